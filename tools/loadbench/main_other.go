//go:build !linux

package main

import "log"

func main() { log.Fatal("bench-load needs Linux: network namespaces and epoll") }
