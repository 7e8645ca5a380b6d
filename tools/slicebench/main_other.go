//go:build !linux

package main

import "log"

func main() { log.Fatal("slicebench needs Linux: network namespaces") }
