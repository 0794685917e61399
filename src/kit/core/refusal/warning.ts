// The value of a `Warning` header field, which kubectl prints.

const CONTROL = /\p{Cc}/gu
/** Total length of all warnings of one response, beyond which each is truncated (apiserver/pkg/endpoints/filters/warning.go). */
const MAX_TOTAL = 4 * 1024
const MAX_EACH = 256

/** The header values of one response: each text once, and no more of them than clients accept in a head. */
export function warningValues(texts: readonly string[]): string[] {
  const different = [...new Set(texts)].filter((text) => text !== '')
  const total = different.reduce((sum, text) => sum + text.length, 0)
  if (total <= MAX_TOTAL) return different.map(warningValue)
  const values: string[] = []
  let written = 0
  for (const text of different) {
    const shortened = Array.from(text.slice(0, 2 * MAX_EACH))
      .slice(0, MAX_EACH)
      .join('')
    if (written >= MAX_TOTAL) break
    written += shortened.length
    values.push(warningValue(shortened))
  }
  return values
}

/**
 * RFC 9111 section 5.5 as Kubernetes uses it: code 299, agent "-", a quoted text. The text may contain what an operator wrote: UTF-8 is
 * sent byte for byte (apimachinery/pkg/util/net/http.go, NewWarningHeader), control characters can't be sent at all.
 */
export function warningValue(text: string): string {
  const oneLine = text.replace(CONTROL, ' ').replace(/[\\"]/g, '\\$&')
  return `299 - "${Buffer.from(oneLine, 'utf8').toString('latin1')}"`
}
