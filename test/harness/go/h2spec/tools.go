//go:build tools

// Package tools pins the HTTP/2 conformance suite.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
