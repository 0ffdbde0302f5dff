// show is a consumer of a Secret: each second it prints what it got by environment variable, by a subPath mount and by a
// volume. GET /ready is refused while one of them is a wrong one, as an application's would be whose password the
// database doesn't take.
//
// "show once" prints that one time, and when, in Unix milliseconds: what a container got at its start.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func file(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "-"
	}
	return strings.TrimSpace(string(content))
}

func env() string {
	if value := os.Getenv("PASSWORD"); value != "" {
		return value
	}
	return "-"
}

func subPath() string { return file("/etc/password") }
func volume() string  { return file("/secret/PASSWORD") }

func show() string {
	return fmt.Sprintf("env=%s subPath=%s volume=%s", env(), subPath(), volume())
}

func ready(answer http.ResponseWriter, _ *http.Request) {
	for _, value := range []string{env(), subPath(), volume()} {
		if strings.HasPrefix(value, "wrong") {
			http.Error(answer, "the database doesn't take this password", http.StatusServiceUnavailable)
			return
		}
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "once" {
		now := time.Now().UnixMilli()
		fmt.Printf("at=%d %s\n", now, show())
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	http.HandleFunc("/ready", ready)
	go http.ListenAndServe(":8080", nil)
	for {
		fmt.Println(show())
		select {
		case <-stop:
			return
		case <-time.After(time.Second):
		}
	}
}
