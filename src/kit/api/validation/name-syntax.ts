// Syntax of names, endpoints and times (k8s.io/apimachinery/pkg/util/validation/validation.go, RFC 3339).

import { canonicalIp } from './ip-address.ts'

/** Spelled as kube-apiserver prints them. */
export const DNS_LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
export const DNS_SUBDOMAIN: string = `${DNS_LABEL}(\\.${DNS_LABEL})*`
/** Label or annotation name without the prefix; also a non-empty label value. */
export const LABEL_NAME = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
export const MAX_DNS_NAME = 253
export const MAX_DNS_LABEL = 63

const DNS_LABEL_PATTERN = new RegExp(`^${DNS_LABEL}$`)
const LABEL_VALUE_PATTERN = new RegExp(`^(${LABEL_NAME})?$`)

/** A lower-case DNS-1123 subdomain whose labels obey DNS length limits. */
export function isDnsName(name: string): boolean {
  if (name.length > MAX_DNS_NAME) return false
  return name.split('.').every((label) => label.length <= MAX_DNS_LABEL && DNS_LABEL_PATTERN.test(label))
}

/** A DNS-1123 label, such as a namespace. */
export function isDnsLabel(text: string): boolean {
  return text.length <= MAX_DNS_LABEL && DNS_LABEL_PATTERN.test(text)
}

/** Kubernetes' rule for object names: labels may be longer than DNS allows. */
export function isObjectName(name: string): boolean {
  return name.length <= MAX_DNS_NAME && name.split('.').every((label) => DNS_LABEL_PATTERN.test(label))
}

/** A label value (IsValidLabelValue); '' is valid. */
export function isLabelValue(value: string): boolean {
  return value.length <= MAX_DNS_LABEL && LABEL_VALUE_PATTERN.test(value)
}

/** A label or annotation key (IsQualifiedName): `name` or `dns.name/name`. */
export function isLabelKey(key: string): boolean {
  const slash = key.indexOf('/')
  const name = key.slice(slash + 1)
  return name !== '' && isLabelValue(name) && (slash < 0 || isObjectName(key.slice(0, slash)))
}

/** A host name, optionally after `*.`, in any case, with or without the trailing dot. */
export function isServerName(name: string): boolean {
  const host = name.toLowerCase().replace(/\.$/, '')
  return isDnsName(host.startsWith('*.') ? host.slice(2) : host)
}

interface EndpointUrl {
  readonly scheme: 'http' | 'https'
  /** Lower case; IPv6 addresses without brackets. */
  readonly host: string
  /** `host:port`, to compare endpoints. */
  readonly address: string
}

const ENDPOINT = /^(https?):\/\/(?:\[([^\]]*)\]|([^:/?#@[\]]*))(?::([^/?#@]*))?(.*)$/s

/** The endpoint, or why it is invalid. */
export function parseEndpoint(url: string): EndpointUrl | { readonly error: string } {
  const [, scheme, ipv6, name = '', portText, rest = ''] = ENDPOINT.exec(url) ?? []
  if (scheme !== 'http' && scheme !== 'https') return { error: 'is not a URL that begins with https:// or http://' }
  const host = ipv6 === undefined ? hostOf(name) : ipv6Of(ipv6)
  if (host === undefined) return { error: `has no valid host` }
  const port = portText === undefined ? (scheme === 'http' ? 80 : 443) : portOf(portText)
  if (port === undefined) return { error: 'has no valid port' }
  if (rest !== '' && rest !== '/') return { error: 'has more than scheme, host and port' }
  return { scheme, host, address: `${host}:${port}` }
}

function ipv6Of(text: string): string | undefined {
  return text.includes(':') && !text.includes('%') ? canonicalIp(text) : undefined
}

function hostOf(name: string): string | undefined {
  // Anything that looks like an IPv4 address must be one.
  if (/^[0-9.]+$/.test(name)) return canonicalIp(name)
  const host = name.toLowerCase().replace(/\.$/, '')
  // Underscores occur in names of containers and services.
  return isDnsName(host.replaceAll('_', '-')) ? host : undefined
}

function portOf(text: string): number | undefined {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0
  return port >= 1 && port <= 65535 ? port : undefined
}

/** An address, or an address with a valid prefix length. */
export function isCidr(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const canonical = address.includes('%') ? undefined : canonicalIp(address)
  if (canonical === undefined || more.length > 0) return false
  if (prefix === undefined) return true
  if (!/^[0-9]{1,3}$/.test(prefix)) return false
  const bits = Number(prefix)
  if (!address.includes(':')) return bits <= 32
  // An IPv4-mapped block includes the 96 bits of the mapping.
  return bits <= 128 && (canonical.includes(':') || bits >= 96)
}

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|[+-](\d\d):(\d\d))$/

/** RFC 3339 with capital T and Z and without leap seconds, as Go parses it. */
export function isTimestamp(text: string): boolean {
  const match = RFC3339.exec(text)
  if (match === null) return false
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0] = match
    .slice(1)
    .map((digits) => Number(digits ?? 0))
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return false
  return hour < 24 && minute < 60 && second < 60 && zoneHour < 24 && zoneMinute < 60
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}
