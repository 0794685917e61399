// Command kubelet-streaming stands in for a node's kubelet in tests. The streaming protocols are the kubelet's own
// (k8s.io/cri-streaming); only the container runtime is replaced: a "container" is a process of this machine.
// kube-apiserver reaches it at the address and port that a Node's status names.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
	logPollInterval = 50 * time.Millisecond
)

// hostRuntime runs every container's commands in one directory of this machine.
type hostRuntime struct {
	workDir       string
	logFile       string // what every container has logged
	forwardTarget string // where every container port leads to
	ending        context.Context
	running       sync.WaitGroup // commands
}

// ExecInContainer implements remotecommand.Executor.
func (h *hostRuntime) ExecInContainer(ctx context.Context, _, _, _ string, argv []string, stdin io.Reader, stdout, stderr io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	h.running.Add(1)
	defer h.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ending, cancel)()
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir = h.workDir
	command.SysProcAttr = commandAttributes()
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) } // its whole group
	if stdout != nil {
		command.Stdout = stdout
	}
	command.Stderr = command.Stdout // a terminal has one output
	if stderr != nil {
		command.Stderr = stderr
	}
	if stdin != nil {
		// Not command.Stdin: Run would wait for a client that keeps its stdin open after the command has ended.
		pipe, err := command.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			defer pipe.Close()
			_, _ = io.Copy(pipe, stdin)
		}()
	}
	err := command.Run()
	if status, ok := err.(*exec.ExitError); ok {
		return utilexec.CodeExitError{Err: status, Code: status.ExitCode()}
	}
	return err
}

// AttachContainer implements remotecommand.Attacher: the "main process" greets, then repeats each line it reads.
func (h *hostRuntime) AttachContainer(_ context.Context, _, _, _ string, stdin io.Reader, stdout, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	if stdout == nil {
		stdout = nopCloser{io.Discard}
	}
	fmt.Fprintln(stdout, "attached")
	if stdin == nil {
		return nil
	}
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		fmt.Fprintf(stdout, "echo %s\n", lines.Text())
	}
	return lines.Err()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// PortForward implements portforward.PortForwarder.
func (h *hostRuntime) PortForward(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
	target, err := net.Dial("tcp", h.forwardTarget)
	if err != nil {
		return err
	}
	defer target.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(target, stream)
		_ = target.(*net.TCPConn).CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(stream, target)
		_ = stream.Close()
	})
	both.Wait()
	return nil
}

func (h *hostRuntime) containerLogs(w http.ResponseWriter, r *http.Request) {
	file, err := os.Open(h.logFile)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer file.Close()
	follow := r.URL.Query().Get("follow") == "true"
	for {
		if _, err := io.Copy(w, file); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		if !follow {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(logPollInterval):
		}
	}
}

// handleCommand serves /exec and /attach: /VERB/NAMESPACE/POD/CONTAINER.
func handleCommand(serve func(w http.ResponseWriter, r *http.Request, pod, container string, options *remotecommand.Options)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		serve(w, r, r.PathValue("pod"), r.PathValue("container"), options)
	}
}

func main() {
	port := flag.Int("port", 10250, "port on 127.0.0.1")
	cert := flag.String("cert", "", "serving certificate, PEM file")
	key := flag.String("key", "", "serving key, PEM file")
	ending, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	runtime := &hostRuntime{ending: ending}
	flag.StringVar(&runtime.workDir, "dir", ".", "working directory of every command")
	flag.StringVar(&runtime.logFile, "log", os.DevNull, "file that serves as every container's log")
	flag.StringVar(&runtime.forwardTarget, "forward", "", "host:port that every container port leads to")
	flag.Parse()

	protocols := remotecommand.SupportedStreamingProtocols
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", handleCommand(func(w http.ResponseWriter, r *http.Request, pod, container string, options *remotecommand.Options) {
		remotecommand.ServeExec(w, r, runtime, pod, "", container, r.URL.Query()["command"], options, idleTimeout, creationTimeout, protocols)
	}))
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", handleCommand(func(w http.ResponseWriter, r *http.Request, pod, container string, options *remotecommand.Options) {
		remotecommand.ServeAttach(w, r, runtime, pod, "", container, options, idleTimeout, creationTimeout, protocols)
	}))
	mux.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		options, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, runtime, r.PathValue("pod"), "", options, idleTimeout, creationTimeout, portforward.SupportedProtocols)
	})
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", runtime.containerLogs)
	server := &http.Server{
		Addr:    fmt.Sprintf("127.0.0.1:%d", *port),
		Handler: mux,
		// HTTP/1.1 only: upgrades do not exist on HTTP/2.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	go func() {
		log.Fatal(strings.TrimSpace(server.ListenAndServeTLS(*cert, *key).Error()))
	}()
	<-ending.Done()
	runtime.running.Wait() // nothing outlives its "node"
}
