// The value of a `Warning` header field, which kubectl prints.

const CONTROL = /\p{Cc}/gu

/**
 * RFC 9111 section 5.5 as Kubernetes uses it: code 299, agent "-", a quoted text. The text may hold what an operator wrote:
 * UTF-8 goes byte for byte (apimachinery/pkg/util/net/http.go, NewWarningHeader), control characters cannot go at all.
 */
export function warningValue(text: string): string {
  const oneLine = text.replace(CONTROL, ' ').replace(/[\\"]/g, '\\$&')
  return `299 - "${Buffer.from(oneLine, 'utf8').toString('latin1')}"`
}
