//go:build !linux

package main

import "syscall"

// commandAttributes makes a command the leader of a process group.
func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
