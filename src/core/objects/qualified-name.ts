// The syntax of names, label keys and label values, and what kube-apiserver says of others: every mistake, '' of none
// (k8s.io/apimachinery/pkg/api/validate/content).

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`
const KEY = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'

const SUBDOMAIN_PATTERN = new RegExp(`^${SUBDOMAIN}$`)
const LABEL_PATTERN = new RegExp(`^${LABEL}$`)
const KEY_PATTERN = new RegExp(`^${KEY}$`)

const MAX_SUBDOMAIN = 253
const MAX_NAME = 63

const KEY_MISTAKE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  `(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${KEY}')`

/** A DNS-1123 subdomain: names of most objects. */
export function subdomainMistakes(text: string, unit: 'characters' | 'bytes' = 'characters'): string[] {
  const mistakes = tooLongIf(byteLength(text) > MAX_SUBDOMAIN, MAX_SUBDOMAIN, unit)
  if (!matches(SUBDOMAIN_PATTERN, text)) {
    mistakes.push(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end " +
        `with an alphanumeric character (e.g. 'example.com', regex used for validation is '${SUBDOMAIN}')`,
    )
  }
  return mistakes
}

/** A DNS-1123 label: names of namespaces. */
export function labelMistakes(text: string): string[] {
  const mistakes = tooLongIf(byteLength(text) > MAX_NAME, MAX_NAME, 'characters')
  if (matches(LABEL_PATTERN, text)) return mistakes
  const message = matches(SUBDOMAIN_PATTERN, text)
    ? 'must not contain dots'
    : "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
      `alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL}')`
  return [...mistakes, message]
}

/** A label's key, a finalizer; in lower case an annotation's key: `name` or `sub.domain/name`. */
export function qualifiedNameMistakes(text: string): string[] {
  const parts = text.split('/')
  if (parts.length > 2) {
    return [
      `a valid label key ${KEY_MISTAKE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const name = parts.at(-1) ?? ''
  const prefix = parts.length === 2 ? parts[0] : undefined
  const mistakes: string[] = []
  if (prefix === '') mistakes.push('prefix part must be non-empty')
  else if (prefix !== undefined)
    mistakes.push(...subdomainMistakes(prefix, 'bytes').map((mistake) => `prefix part ${mistake}`))
  if (name === '') mistakes.push('name part must be non-empty')
  else mistakes.push(...tooLongIf(byteLength(name) > MAX_NAME, MAX_NAME).map((mistake) => `name part ${mistake}`))
  if (!matches(KEY_PATTERN, name)) mistakes.push(`name part ${KEY_MISTAKE}`)
  return mistakes
}

export function labelValueMistakes(text: string): string[] {
  const mistakes = tooLongIf(byteLength(text) > MAX_NAME, MAX_NAME)
  if (text !== '' && !matches(KEY_PATTERN, text)) {
    mistakes.push(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end " +
        `with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${KEY})?')`,
    )
  }
  return mistakes
}

/** What a generateName must be: a name whose end may be a dash. */
export function withoutTrailingDash(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix
}

/** Patterns backtrack; no valid text is long. */
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
