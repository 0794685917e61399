// Syntax of names, label keys and label values, with kube-apiserver's error messages: every error, none if the name is valid
// (k8s.io/apimachinery/pkg/api/validate/content).

import {
  LABEL_NAME as KEY,
  DNS_LABEL as LABEL,
  MAX_DNS_LABEL,
  MAX_DNS_NAME,
  DNS_SUBDOMAIN as SUBDOMAIN,
} from './name-syntax.ts'

const SUBDOMAIN_PATTERN = new RegExp(`^${SUBDOMAIN}$`)
const LABEL_PATTERN = new RegExp(`^${LABEL}$`)
const KEY_PATTERN = new RegExp(`^${KEY}$`)

const KEY_ERROR =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  `(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${KEY}')`

/** A DNS-1123 subdomain: names of most objects. */
export function subdomainErrors(text: string, unit: 'characters' | 'bytes' = 'characters'): string[] {
  const errors = tooLongIf(byteLength(text) > MAX_DNS_NAME, MAX_DNS_NAME, unit)
  if (!matches(SUBDOMAIN_PATTERN, text)) {
    errors.push(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end " +
        `with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`,
    )
  }
  return errors
}

/** A DNS-1123 label: names of namespaces. */
export function labelErrors(text: string): string[] {
  const errors = tooLongIf(byteLength(text) > MAX_DNS_LABEL, MAX_DNS_LABEL, 'characters')
  if (matches(LABEL_PATTERN, text)) return errors
  const message = matches(SUBDOMAIN_PATTERN, text)
    ? 'must not contain dots'
    : "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
      `alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`
  return [...errors, message]
}

/** A label key or finalizer; in lower case, an annotation key: `name` or `sub.domain/name`. */
export function qualifiedNameErrors(text: string): string[] {
  const parts = text.split('/')
  if (parts.length > 2) {
    return [`a valid label key ${KEY_ERROR} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`]
  }
  const name = parts.at(-1) ?? ''
  const prefix = parts.length === 2 ? parts[0] : undefined
  const errors: string[] = []
  if (prefix === '') errors.push('prefix part must be non-empty')
  else if (prefix !== undefined) errors.push(...subdomainErrors(prefix, 'bytes').map((error) => `prefix part ${error}`))
  if (name === '') errors.push('name part must be non-empty')
  else errors.push(...tooLongIf(byteLength(name) > MAX_DNS_LABEL, MAX_DNS_LABEL).map((error) => `name part ${error}`))
  if (!matches(KEY_PATTERN, name)) errors.push(`name part ${KEY_ERROR}`)
  return errors
}

export function labelValueErrors(text: string): string[] {
  const errors = tooLongIf(byteLength(text) > MAX_DNS_LABEL, MAX_DNS_LABEL)
  if (text !== '' && !matches(KEY_PATTERN, text)) {
    errors.push(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end " +
        `with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${KEY})?')`,
    )
  }
  return errors
}

/** For a generateName: a name that may end with a dash. */
export function withoutTrailingDash(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix
}

/** Patterns backtrack, and no valid text is long. */
function matches(pattern: RegExp, text: string): boolean {
  return text.length <= MAX_LENGTH && pattern.test(text)
}
const MAX_LENGTH = 4096

function tooLongIf(long: boolean, maximum: number, unit = 'bytes'): string[] {
  return long ? [`must be no more than ${maximum} ${unit}`] : []
}

function byteLength(text: string): number {
  return Buffer.byteLength(text)
}
