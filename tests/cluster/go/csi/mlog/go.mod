module monis.app/mlog

go 1.26.0

require k8s.io/klog/v2 v2.100.1

require github.com/go-logr/logr v1.2.4 // indirect
