//go:build tools

// Package tools pins versitygw, an S3 server on a folder, for the tests.
package tools

import _ "github.com/versity/versitygw/cmd/versitygw"
