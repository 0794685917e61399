//go:build tools

// Package tools pins k9s, which is run with credential plugins.
package tools

import _ "github.com/derailed/k9s"
