// What the cache has to know of an object, read from its JSON as it came: kube-apiserver writes it once, and it is answered with the same bytes.

import { isResourceVersion } from '../../../kube/core/objects/resource-version.ts'
import type { Labels } from '../../../kube/core/selectors/label-requirement.ts'
import type { SelectableField, SelectedValues } from '../fields/selectable-fields.ts'
import { KnownValues } from './known-values.ts'
import { malformed } from './malformed.ts'
import {
  BACKSLASH,
  CLOSE_MAP,
  COMMA,
  isNull,
  notAfterValue,
  OPEN_LIST,
  OPEN_MAP,
  QUOTE,
  skipColon,
  skipKey,
  skipSpace,
  skipValue,
} from './skip-json.ts'

/** In whatever encoding. */
export interface Facts extends SelectedValues {
  readonly kind: string
  readonly apiVersion: string
  /** Never ''. */
  readonly name: string
  readonly uid: string
  /** Decimal, of at most MAX_VERSION_DIGITS. */
  readonly resourceVersion: string
  readonly labels: Labels
}

export interface ObjectFacts extends Facts {
  /** The value of `metadata`, with its braces: [start, end). */
  readonly metadata: ByteRange
  /** The value of `metadata.resourceVersion`, with its quotes. */
  readonly version: ByteRange
  /** Where it goes on behind `{"kind":"Pod","apiVersion":"v1",`. Items of lists of Kubernetes' own kinds lack that; 0 = it does not begin so. */
  readonly bare: number
}

export interface ByteRange {
  readonly start: number
  readonly end: number
}

export interface BookmarkFacts {
  readonly metadata: ByteRange
  readonly version: ByteRange
  readonly resourceVersion: string
  /** It ends the events with which a watch begins. */
  readonly endsInitialEvents: boolean
}

export const NO_LABELS: Labels = Object.freeze({})
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end'

/** As many as 2^128-1 has, the highest that Kubernetes' conformance allows (KEP-5504): to count with much longer ones takes more than linear time. */
export const MAX_VERSION_DIGITS = 39

/** Whether this is the version of an object, a list or a bookmark that may be kept. */
export function isKeepableVersion(version: string): boolean {
  return version.length <= MAX_VERSION_DIGITS && isResourceVersion(version)
}

/** Keys that are looked for in a map. */
interface Wanted {
  readonly keys: readonly Buffer[]
  /** In the order of the keys. */
  readonly values: readonly WantedValue[]
}

interface WantedValue {
  /** Where [start, end) of the value is noted: at 2 * slot and behind it. */
  readonly slot: number
  /** What is looked for in it. */
  readonly inside: Map<string, WantedValue>
  /** undefined = nothing. */
  compiled: Wanted | undefined
}

/** By slot. */
const FIXED: readonly (readonly string[])[] = [
  ['kind'],
  ['apiVersion'],
  ['metadata'],
  ['metadata', 'name'],
  ['metadata', 'namespace'],
  ['metadata', 'uid'],
  ['metadata', 'resourceVersion'],
  ['metadata', 'labels'],
  ['metadata', 'annotations'],
]
const KIND = 0
const API_VERSION = 1
const METADATA = 2
const NAME = 3
const NAMESPACE = 4
const UID = 5
const VERSION = 6
const LABELS = 7
const ANNOTATIONS = 8

/** Reads the facts of objects of one resource. */
export class FactsReader {
  readonly #fields: readonly SelectableField[]
  /** Slots of the paths of each field. */
  readonly #slots: readonly (readonly number[])[]
  readonly #wanted: Wanted
  /** [start, end) of each slot; end 0 = the object does not have it. */
  readonly #found: Int32Array
  readonly #known = new KnownValues()

  /** @param fields kept of every object */
  constructor(fields: readonly SelectableField[]) {
    this.#fields = fields
    const root = new Map<string, WantedValue>()
    let slots = 0
    const slotOf = (path: readonly string[]): number => {
      const slot = want(root, path, slots)
      slots = Math.max(slots, slot + 1)
      return slot
    }
    for (const path of FIXED) slotOf(path)
    this.#slots = fields.map(({ paths }) => paths.map(({ json }) => slotOf(json)))
    this.#wanted = compile(root)
    this.#found = new Int32Array(2 * slots)
  }

  /**
   * @param json one object, alone, as a watch has it
   * @throws {MalformedError} also without kind, apiVersion, name or a decimal resourceVersion
   */
  read(json: Buffer): ObjectFacts {
    this.#walk(json)
    const name = this.#text(json, NAME)
    if (name === '') throw malformed('an object has no name')
    const kind = this.#text(json, KIND)
    const apiVersion = this.#text(json, API_VERSION)
    if (kind === '' || apiVersion === '') throw malformed('an object has no kind or apiVersion')
    this.#checkAnnotations(json)
    return {
      kind,
      apiVersion,
      namespace: this.#text(json, NAMESPACE),
      name,
      uid: this.#text(json, UID),
      resourceVersion: this.#resourceVersion(json),
      labels: this.#labels(json),
      fields: this.#fields.map((field, index) => this.#field(json, field, this.#slots[index] ?? [])),
      metadata: this.#range(METADATA),
      version: this.#range(VERSION),
      bare: this.#bare(json),
    }
  }

  /** Nothing is read of them; but a federated cluster adds one of its own, and must not find out in the middle of an answer that it cannot. */
  #checkAnnotations(json: Buffer): void {
    const { start, end } = this.#range(ANNOTATIONS)
    if (end > 0 && json[start] !== OPEN_MAP && !isNull(json, start)) throw malformed('annotations are not a map')
  }

  /** The facts of a bookmark, which has no name. @throws {MalformedError} */
  readBookmark(json: Buffer): BookmarkFacts {
    this.#walk(json)
    const { start, end } = this.#range(ANNOTATIONS)
    const annotations = end === 0 ? {} : stringsOf(json, start, end, 'annotations')
    return {
      metadata: this.#range(METADATA),
      version: this.#range(VERSION),
      resourceVersion: this.#resourceVersion(json),
      endsInitialEvents: annotations[INITIAL_EVENTS_END] === 'true',
    }
  }

  #walk(json: Buffer): void {
    this.#found.fill(0)
    const start = skipSpace(json, 0)
    if (json[start] !== OPEN_MAP) throw malformed('it is not a JSON object')
    const end = skipSpace(json, find(json, start, this.#wanted, this.#found))
    if (end !== json.length) throw malformed('an object is followed by something else')
  }

  #range(slot: number): ByteRange {
    return { start: this.#found[2 * slot] ?? 0, end: this.#found[2 * slot + 1] ?? 0 }
  }

  /** '' if it is absent or null. */
  #text(json: Buffer, slot: number): string {
    const start = this.#found[2 * slot] ?? 0
    const end = this.#found[2 * slot + 1] ?? 0
    if (json[start] === QUOTE && end > 0) {
      const decode = (): string => stringAt(json, start, end)
      const isItsOwn = slot === NAME || slot === UID || slot === VERSION
      return isItsOwn ? decode() : this.#known.text(json, start + 1, end - 1, decode)
    }
    if (end === 0 || isNull(json, start)) return ''
    throw malformed('a field is not a string')
  }

  #resourceVersion(json: Buffer): string {
    const version = this.#text(json, VERSION)
    if (!isKeepableVersion(version)) throw malformed('an object has no decimal resourceVersion, or a very long one')
    return version
  }

  #labels(json: Buffer): Labels {
    const { start, end } = this.#range(LABELS)
    if (end === 0) return NO_LABELS
    return this.#known.labels(json, start, end, () => stringsOf(json, start, end, 'labels'))
  }

  #field(json: Buffer, { absent }: SelectableField, slots: readonly number[]): string {
    for (const slot of slots) {
      const value = this.#scalar(json, slot)
      if (value !== '') return value
    }
    return absent
  }

  /** A string, or a number or a boolean as it is written. */
  #scalar(json: Buffer, slot: number): string {
    const { start, end } = this.#range(slot)
    const c = json[start]
    if (end === 0 || c === QUOTE || isNull(json, start)) return this.#text(json, slot)
    if (c === OPEN_MAP || c === OPEN_LIST)
      throw malformed('a selectable field is neither a string, a number nor a boolean')
    return json.toString('latin1', start, end)
  }

  /** kube-apiserver writes no white space. */
  #bare(json: Buffer): number {
    const kind = this.#range(KIND)
    const apiVersion = this.#range(API_VERSION)
    const behind = apiVersion.end + 1
    const begins =
      kind.start === KIND_START &&
      apiVersion.start === kind.end + API_VERSION_KEY.length &&
      json[apiVersion.end] === COMMA
    return begins && behind < json.length ? behind : 0
  }
}

const KIND_START = '{"kind":'.length
const API_VERSION_KEY = ',"apiVersion":'

/**
 * @param next the next free slot
 * @returns the slot of the value; those around it have one too
 */
function want(root: Map<string, WantedValue>, path: readonly string[], next: number): number {
  let map = root
  let slot = -1
  for (const key of path) {
    const value = map.get(key) ?? { slot: next++, inside: new Map(), compiled: undefined }
    map.set(key, value)
    map = value.inside
    slot = value.slot
  }
  return slot
}

function compile(map: ReadonlyMap<string, WantedValue>): Wanted {
  for (const value of map.values()) if (value.inside.size > 0) value.compiled = compile(value.inside)
  return { keys: [...map.keys()].map((key) => Buffer.from(key)), values: [...map.values()] }
}

/**
 * Notes where the wanted values of a map are.
 * @param at of its opening brace
 * @returns the index behind it
 */
function find(json: Buffer, at: number, wanted: Wanted, found: Int32Array): number {
  at = skipSpace(json, at + 1)
  if (json[at] === CLOSE_MAP) return at + 1
  for (;;) {
    at = skipSpace(json, at)
    const key = skipKey(json, at)
    const value = wantedAt(json, at + 1, key - 1, wanted)
    at = skipSpace(json, skipColon(json, key))
    at = value === undefined ? skipValue(json, at) : note(json, at, value, found)
    at = skipSpace(json, at)
    const c = json[at++]
    if (c === CLOSE_MAP) return at
    if (c !== COMMA) throw notAfterValue(c)
  }
}

/** @returns the index behind the value */
function note(json: Buffer, at: number, { slot, compiled }: WantedValue, found: Int32Array): number {
  const isMap = json[at] === OPEN_MAP
  if (compiled !== undefined && !isMap && !isNull(json, at)) throw malformed('a field is not an object')
  const behind = compiled !== undefined && isMap ? find(json, at, compiled, found) : skipValue(json, at)
  if (found[2 * slot + 1] !== 0) throw malformed('a field is there twice')
  found[2 * slot] = at
  found[2 * slot + 1] = behind
  return behind
}

/** Whose key is [start, end). */
function wantedAt(json: Buffer, start: number, end: number, { keys, values }: Wanted): WantedValue | undefined {
  const length = end - start
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]
    if (key?.length === length && isAt(json, start, key)) return values[i]
  }
  // Go escapes <, > and &, which no wanted key has; another server may escape anything.
  for (let at = start; at < end; at++) {
    if (json[at] === BACKSLASH) return escapedWanted(stringAt(json, start - 1, end + 1), { keys, values })
  }
  return undefined
}

function isAt(json: Buffer, start: number, key: Buffer): boolean {
  for (let i = 0; i < key.length; i++) if (json[start + i] !== key[i]) return false
  return true
}

function escapedWanted(text: string, { keys, values }: Wanted): WantedValue | undefined {
  const bytes = Buffer.from(text)
  return values[keys.findIndex((key) => key.equals(bytes))]
}

/** The string [start, end), with its quotes. */
function stringAt(json: Buffer, start: number, end: number): string {
  for (let at = start + 1; at < end; at++) {
    if (json[at] === BACKSLASH) return JSON.parse(json.toString('utf8', start, end))
  }
  return json.toString('utf8', start + 1, end - 1)
}

/** Labels or annotations. */
function stringsOf(json: Buffer, start: number, end: number, what: string): Labels {
  if (isNull(json, start)) return NO_LABELS
  if (json[start] !== OPEN_MAP) throw malformed(`the ${what} are not a map`)
  const map: Record<string, unknown> = JSON.parse(json.toString('utf8', start, end))
  for (const value of Object.values(map)) if (typeof value !== 'string') throw malformed(`the ${what} are not strings`)
  return map as Labels
}
