package main

import "syscall"

// commandAttributes makes a command the leader of a process group, which the kernel ends when this program is killed.
func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
