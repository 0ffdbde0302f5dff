// Package mlog has what the CSI driver uses of the module of this name, which it configures its log with: here it logs to
// standard error as klog does by itself.
package mlog

import (
	"context"

	"k8s.io/klog/v2"
)

// Formats that the driver knows.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// Setup gives back what ends the log.
func Setup() func() { return klog.Flush }

// ValidateAndSetKlogLevelAndFormatGlobally leaves both as they are.
func ValidateAndSetKlogLevelAndFormatGlobally(context.Context, klog.Level, string) error { return nil }

// Error logs it.
func Error(message string, err error) { klog.ErrorS(err, message) }

// Fatal logs it, and ends the program.
func Fatal(err error) { klog.Fatal(err) }
