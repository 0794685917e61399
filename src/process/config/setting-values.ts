// Parsers of setting values. A parser returns the value, or the error and the fix; it accepts what a flag or variable (text) and a YAML file (text,
// number, boolean, list) can contain.

import { parseRedisAddress } from '../../gateway/io/redis/address.ts'
import type { FieldError } from '../../kit/api/json/field-error.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { canonicalIp } from '../../kit/api/validation/ip-address.ts'
import { isDnsLabel, isServerName } from '../../kit/api/validation/name-syntax.ts'
import type { CompiledCidr } from '../../kit/core/dial/cidr.ts'
import { parseCidr } from '../../kit/core/dial/cidr.ts'
import { type AllowedServers, parseAllowedServer } from '../../kit/core/dial/dial-rules.ts'
import {
  type ListenAddress,
  parseClientListenAddress,
  parseListenAddress,
  parseSocketAddress,
} from '../../kit/core/listen-address.ts'
import { formatDuration, parseDuration } from '../../kit/core/text/duration.ts'

export type Parsed<T> = { readonly value: T } | InvalidValue

/** The message follows the value: `"x" is not a duration`; for lists, a message that begins with `: ` contains the entry itself and stands alone. */
export interface InvalidValue extends Pick<FieldError, 'message' | 'fix'> {
  /** The value may contain a password and is not shown. */
  readonly hidden?: boolean
}

export type ValueParser<T> = (raw: unknown) => Parsed<T>

/** Any non-empty text. */
export function parseText(raw: unknown): Parsed<string> {
  if (typeof raw === 'number') return { value: String(raw) }
  if (typeof raw === 'string' && raw.trim() !== '') return { value: raw }
  return {
    message: raw === '' ? 'is empty' : 'is not a string',
    fix: 'give a string, for example a path, or leave it out',
  }
}

/** @param what its value is then said not to be */
export function textLike(pattern: RegExp, what: string, fix: string): ValueParser<string> {
  return (raw) => {
    const parsed = parseText(raw)
    return 'value' in parsed && !pattern.test(parsed.value) ? { message: `is not ${what}`, fix } : parsed
  }
}

/** An http or https URL without anything that may be secret: it is shown. */
export function plainUrl(example: string): ValueParser<string> {
  const parse = textLike(
    /^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/,
    'an HTTP URL without credentials and query',
    `write ${example}`,
  )
  return (raw) => {
    const parsed = parse(raw)
    if ('value' in parsed && URL.canParse(parsed.value)) return parsed
    return 'value' in parsed
      ? { message: 'is not a URL', fix: `write ${example}`, hidden: true }
      : { ...parsed, hidden: true }
  }
}

/** true, false, on, off, yes, no, 1, 0. A flag without a value means true. */
export function parseSwitch(raw: unknown): Parsed<boolean> {
  if (typeof raw === 'boolean') return { value: raw }
  const text = String(raw).toLowerCase()
  if (['true', 'on', 'yes', '1'].includes(text)) return { value: true }
  if (['false', 'off', 'no', '0'].includes(text)) return { value: false }
  return { message: 'is neither true nor false', fix: 'write true or false' }
}

/** `host:port`. */
export function parseAddress(raw: unknown): Parsed<string> {
  const text = String(raw)
  const address = parseListenAddress(text)
  if ('error' in address) return invalidAddress(address.error)
  return { value: text }
}

/** `host:port`, parsed. */
export function parseHostPort(raw: unknown): Parsed<ListenAddress> {
  const address = parseListenAddress(String(raw))
  return 'error' in address ? invalidAddress(address.error) : { value: address }
}

/** `host:port` or inherited socket, as text. */
export function parseSocketText(raw: unknown): Parsed<string> {
  const address = parseSocketAddress(String(raw))
  return 'error' in address ? invalidAddress(address.error, INHERITED) : { value: String(raw) }
}

/** `host:port` or inherited socket, parsed. */
export function parseOneAddress(raw: unknown): Parsed<ListenAddress> {
  const address = parseSocketAddress(String(raw))
  return 'error' in address ? invalidAddress(address.error, INHERITED) : { value: address }
}

/** One text or several: a list, or a comma-separated text. */
export function parseTexts(raw: unknown): Parsed<readonly string[]> {
  const texts = textsOf(raw)
  return texts.length > 0 ? { value: texts } : { message: 'names nothing', fix: 'give at least one name' }
}

/** A certificate is sent in every handshake. */
const MOST_HOSTS = 50

/** Names that a certificate can contain, and addresses. */
export function parseHosts(raw: unknown): Parsed<readonly string[]> {
  const hosts = textsOf(raw).map((host) => canonicalIp(host) ?? host.toLowerCase().replace(/\.$/, ''))
  const wrong = hosts.find((host) => canonicalIp(host) === undefined && !isServerName(host))
  if (wrong === undefined && hosts.length > MOST_HOSTS) {
    return { message: 'has too many names', fix: `give at most ${MOST_HOSTS}, or a certificate of your own` }
  }
  if (wrong === undefined && hosts.length > 0) return { value: hosts }
  const message = `${hosts.length > 1 ? `: "${wrong ?? ''}" ` : ''}is neither a host name nor an address`
  return { message, fix: 'write prod.example.com, *.example.com or 192.0.2.10, without a port' }
}

/** `user:NAME` and `group:NAME`. */
export function parseSubjects(raw: unknown): Parsed<readonly string[]> {
  const fix = 'write user:NAME or group:NAME, for example group:platform-sres'
  const subjects = textsOf(raw)
  const wrong = subjects.find((subject) => !/^(user|group):./.test(subject))
  if (wrong === undefined && subjects.length > 0) return { value: subjects }
  return { message: subjects.length > 1 ? `: "${wrong ?? ''}" names no user` : 'names no user', fix }
}

/** Namespace names: a list, or a comma-separated text. */
export function parseNamespaces(raw: unknown): Parsed<readonly string[]> {
  const namespaces = textsOf(raw)
  const wrong = namespaces.find((namespace) => !isDnsLabel(namespace))
  if (wrong === undefined && namespaces.length > 0) return { value: namespaces }
  const message =
    namespaces.length > 1 ? `: "${wrong ?? ''}" is not the name of a namespace` : 'is not the name of a namespace'
  return { message, fix: 'write the name of a namespace, for example portcullis-system; there are no patterns' }
}

/** Neither the message nor the value as shown contains a password. */
export function parseRedisUrl(raw: unknown): Parsed<string> {
  const text = String(raw)
  try {
    parseRedisAddress(text)
    return { value: text }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    const message = error.message.replace('the address of Redis ', '')
    return { message, fix: `${error.fix}; the password is in --redis-password-file`, hidden: text.includes('@') }
  }
}

/** One `host:port` or several: a list, or a comma-separated text. */
export function parseHostPorts(raw: unknown): Parsed<readonly ListenAddress[]> {
  const addresses: ListenAddress[] = []
  for (const text of textsOf(raw)) {
    const address = parseListenAddress(text)
    if ('error' in address) return invalidAddress(`: "${text}" ${address.error}`)
    addresses.push(address)
  }
  return { value: addresses }
}

/** One or more of `host:port` or inherited socket, optionally with `/proxy-protocol`: a list, or a comma-separated text. */
export function parseAddresses(raw: unknown): Parsed<readonly ListenAddress[]> {
  const addresses: ListenAddress[] = []
  for (const text of textsOf(raw)) {
    const address = parseClientListenAddress(text)
    if ('error' in address)
      return invalidAddress(textsOf(raw).length > 1 ? `: "${text}" ${address.error}` : address.error, INHERITED)
    addresses.push(address)
  }
  if (addresses.length === 0) return invalidAddress('names no address', INHERITED)
  return { value: addresses }
}

/** One address range or several: a list, or a comma-separated text. */
export function parseCidrs(raw: unknown): Parsed<readonly CompiledCidr[]> {
  const cidrs: CompiledCidr[] = []
  for (const text of textsOf(raw)) {
    const cidr = parseCidr(text)
    if (cidr === undefined) {
      const message =
        textsOf(raw).length > 1 ? `: "${text}" is not a range of addresses` : 'is not a range of addresses'
      return { message, fix: 'write a CIDR or an address, for example 10.0.0.0/24, fd00::/64 or 192.0.2.7' }
    }
    cidrs.push(cidr)
  }
  if (cidrs.length > 0) return { value: cidrs }
  return { message: 'names no range of addresses', fix: 'write at least one, for example 10.0.0.0/24' }
}

/** One local server or several: a list, or a comma-separated text. */
export function parseAllowedServers(raw: unknown): Parsed<readonly AllowedServers[]> {
  const fix =
    'write an address or a range, with a port or without, for example 127.0.0.1:6443, 127.0.0.0/8 or [::1]:6443'
  const servers: AllowedServers[] = []
  for (const text of textsOf(raw)) {
    const server = parseAllowedServer(text)
    if (server === undefined) {
      const what = 'is not an address or range with a port or without; names are not looked up'
      return { message: textsOf(raw).length > 1 ? `: "${text}" ${what}` : what, fix }
    }
    servers.push(server)
  }
  return servers.length > 0 ? { value: servers } : { message: 'names no address', fix }
}

const INHERITED = '; or systemd:NAME or fd:N, a socket that the process inherits'

function invalidAddress(message: string, inherited = ''): InvalidValue {
  const fix = 'write host:port, for example 127.0.0.1:8443 or [::1]:8443, with a port from 0 (any free one) to 65535'
  return { message, fix: fix + inherited }
}

function textsOf(raw: unknown): string[] {
  const items: unknown[] = Array.isArray(raw) ? raw : [raw]
  return items
    .flatMap((item) => String(item).split(','))
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** A Go duration within bounds, as milliseconds. */
export function durationBetween(minMs: number, maxMs: number): ValueParser<number> {
  const range = `from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`
  const fix = `write a duration ${range} with its unit, for example 30s, 1m30s or 500ms`
  return (raw) => {
    const ms = parseDuration(String(raw).trim())
    if (ms === undefined) return { message: 'is not a duration', fix }
    return ms < minMs || ms > maxMs ? { message: `is not ${range}`, fix } : { value: ms }
  }
}

/** A whole number within bounds. */
export function integerBetween(min: number, max: number): ValueParser<number> {
  const fix = `write a whole number from ${min} to ${max}`
  return (raw) => {
    const text = String(raw).trim()
    if (!/^\d{1,15}$/.test(text)) return { message: 'is not a whole number', fix }
    const value = Number(text)
    return value < min || value > max ? { message: `is not from ${min} to ${max}`, fix } : { value }
  }
}

/** A decimal number, without exponent. */
export function numberBetween(min: number, max: number): ValueParser<number> {
  const fix = `write a number from ${min} to ${max}, for example ${max / 2}`
  return (raw) => {
    const text = String(raw).trim()
    if (!/^(\d{1,9}(\.\d{0,9})?|\.\d{1,9})$/.test(text)) return { message: 'is not a number', fix }
    const value = Number(text)
    return value < min || value > max ? { message: `is not from ${min} to ${max}`, fix } : { value }
  }
}

const BYTE_UNITS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['k', 1000],
  ['Ki', 1024],
  ['KiB', 1024],
  ['M', 1e6],
  ['Mi', 1024 * 1024],
  ['MiB', 1024 * 1024],
  ['G', 1e9],
  ['Gi', 1024 ** 3],
  ['GiB', 1024 ** 3],
])

/** Bytes, plain or with a Kubernetes quantity unit. */
export function bytesBetween(min: number, max: number): ValueParser<number> {
  const fix = `write bytes from ${min} to ${max}, for example 1048576 or 1Mi`
  return (raw) => {
    const found = /^(\d{1,15})\s*([A-Za-z]*)$/.exec(String(raw).trim())
    const unit = BYTE_UNITS.get(found?.[2] ?? '')
    if (found === null || unit === undefined) return { message: 'is not a number of bytes', fix }
    const value = Number(found[1]) * unit
    return value < min || value > max ? { message: `is not from ${min} to ${max} bytes`, fix } : { value }
  }
}

/** One of a few words. */
export function oneOf<T extends string>(words: readonly T[]): ValueParser<T> {
  const fix = `write one of ${words.join(', ')}`
  return (raw) => {
    const word = words.find((candidate) => candidate === raw)
    return word === undefined ? { message: 'is not known', fix } : { value: word }
  }
}

/** Some of a few words: a list, or a comma-separated text. */
export function someOf<Word extends string>(words: readonly Word[]): ValueParser<readonly Word[]> {
  const known = new Set<string>(words)
  const fix = `write some of ${words.join(', ')}`
  return (raw) => {
    const texts = textsOf(raw)
    const wrong = texts.find((text) => !known.has(text))
    if (wrong === undefined && texts.length > 0) {
      return { value: texts.flatMap((text) => words.find((word) => word === text) ?? []) }
    }
    return { message: texts.length > 1 ? `names "${wrong ?? ''}", which is not known` : 'is not known', fix }
  }
}
