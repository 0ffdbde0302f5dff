// provider is a vault for the Secrets Store CSI driver: a folder. It also tells the kubelet where the driver is, as the
// driver's sidecar would.
//
//	provider VAULT PROVIDERS DRIVER REGISTRY
//
// serves the provider "folder" at PROVIDERS/folder.sock and registers the socket DRIVER in the folder REGISTRY. A class's
// parameter "objects" names files of VAULT, separated by commas; an object's version is the digest of its content.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	driver "sigs.k8s.io/secrets-store-csi-driver/provider/v1alpha1"
)

const driverName = "secrets-store.csi.k8s.io"

type vault struct{ folder string }

func (vault) Version(context.Context, *driver.VersionRequest) (*driver.VersionResponse, error) {
	return &driver.VersionResponse{Version: "v1alpha1", RuntimeName: "folder", RuntimeVersion: "1.0.0"}, nil
}

// Mount gives the driver what it is to write into the pod's volume.
func (v vault) Mount(_ context.Context, request *driver.MountRequest) (*driver.MountResponse, error) {
	var parameters map[string]string
	if err := json.Unmarshal([]byte(request.GetAttributes()), &parameters); err != nil {
		return nil, fmt.Errorf("the attributes of a mount: %w", err)
	}
	answer := &driver.MountResponse{}
	for _, name := range strings.Split(parameters["objects"], ",") {
		content, err := os.ReadFile(filepath.Join(v.folder, filepath.Base(name)))
		if err != nil {
			return nil, err
		}
		digest := sha256.Sum256(content)
		version := &driver.ObjectVersion{Id: "folder/" + name, Version: hex.EncodeToString(digest[:6])}
		answer.ObjectVersion = append(answer.ObjectVersion, version)
		answer.Files = append(answer.Files, &driver.File{Path: name, Mode: 0o644, Contents: content})
	}
	return answer, nil
}

type sidecar struct{ endpoint string }

func (s sidecar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              driverName,
		Endpoint:          s.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (sidecar) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %t %s", status.GetPluginRegistered(), status.GetError())
	return &registration.RegistrationStatusResponse{}, nil
}

// serve serves at a socket until the program ends.
func serve(socket string, register func(*grpc.Server)) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	log.Fatal(server.Serve(listener))
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: provider VAULT PROVIDERS DRIVER REGISTRY")
	}
	folder, providers, endpoint, registry := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	go serve(filepath.Join(providers, "folder.sock"), func(server *grpc.Server) {
		driver.RegisterCSIDriverProviderServer(server, vault{folder})
	})
	serve(filepath.Join(registry, driverName+"-reg.sock"), func(server *grpc.Server) {
		registration.RegisterRegistrationServer(server, sidecar{endpoint})
	})
}
