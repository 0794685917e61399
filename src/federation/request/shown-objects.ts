// How a caller is shown objects of members: named and stamped as those of all members, with the versions of the members that it may see and of no other.

import {
  type AnswerForm,
  type EventObject,
  isProtobuf,
  type ListPieces,
  type ObjectBytes,
} from '../../cache/core/bytes/answer-form.ts'
import {
  type EventType,
  type ListFrame,
  listItem,
  PARTIAL,
  PARTIAL_END,
  PARTIAL_HEAD,
  PARTIAL_LIST,
  partialMetadata,
} from '../../cache/core/bytes/answers.ts'
import { malformed, writable } from '../../cache/core/bytes/malformed.ts'
import { INITIAL_EVENTS_END } from '../../cache/core/bytes/object-facts.ts'
import type { JsonForm, TypeMeta } from '../../cache/core/bytes/object-form.ts'
import { partsOf } from '../../cache/core/bytes/part-reader.ts'
import { inSlices } from '../../cache/request/scan.ts'
import type { CachedObject } from '../../cache/state/cached-object.ts'
import type { NameMode } from '../../gateway/core/federation/names.ts'
import { textHead } from '../../gateway/core/websocket/frames.ts'
import type { Exchange } from '../../gateway/request/exchange/exchange.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { stampObject } from '../core/objects.ts'
import type { TableWriter } from '../core/tables/table-writer.ts'
import { encodeVector, type VersionVector } from '../core/vectors.ts'
import type { FederatedCollection, Versions } from '../state/federated-collection.ts'
import { outOfMemory } from './refusals.ts'

/** An object of a member. */
export interface MemberObject {
  readonly slot: number
  readonly object: CachedObject
}

interface ShownAs {
  readonly epoch: number
  /** By slot. */
  readonly members: readonly string[]
  /** Slots of which the caller may see something. */
  readonly visible: readonly boolean[]
  readonly mode: NameMode
  readonly areNamespaces: boolean
  /** In which the members keep them. */
  readonly json: JsonForm
  /** Metadata and nothing else. */
  readonly partial: boolean
  readonly form: AnswerForm
  /** undefined = it is not shown in Tables. */
  readonly table: TableWriter | undefined
  /** Type of the list: PodList, v1. */
  readonly list: TypeMeta
  /** Each event is a message of a WebSocket. */
  readonly isWebSocket: boolean
}

export interface ListEnd {
  /** '' = this is all. */
  readonly continue: string
  /** undefined = not said. */
  readonly remaining: number | undefined
}

export class ShownObjects {
  readonly #as: ShownAs
  readonly #collection: FederatedCollection
  /** Two callers who may see the same are shown the same. */
  readonly name: string

  constructor(as: ShownAs, collection: FederatedCollection) {
    this.#as = as
    this.#collection = collection
    this.name = `${as.form.name} ${as.isWebSocket ? 'message' : 'line'} ${as.visible.map(Number).join('')}`
  }

  get form(): AnswerForm {
    return this.#as.form
  }

  /** Their cells say how old something is at the moment. */
  get areTables(): boolean {
    return this.#as.table !== undefined
  }

  get isWebSocket(): boolean {
    return this.#as.isWebSocket
  }

  isVisible(slot: number): boolean {
    return this.#as.visible[slot] === true
  }

  /** As a resourceVersion. */
  version(versions: Versions): string {
    return encodeVector(this.vector(versions))
  }

  vector(versions: Versions): VersionVector {
    return { epoch: this.#as.epoch, versions: this.visibleOf(versions) }
  }

  /** Without those of members that the caller does not see: as if they had not joined. */
  visibleOf(versions: Versions): Versions {
    return versions.map((version, slot) => (this.isVisible(slot) ? version : ''))
  }

  /** @param versions Default: those that it was given when it was applied */
  stamped({ slot, object }: MemberObject, versions?: Versions): ObjectBytes {
    return this.stampedBytes(slot, object, versions ?? this.#collection.stampOf(slot, object))
  }

  stampedBytes(slot: number, { content, facts }: ObjectBytes, versions: Versions): ObjectBytes {
    if (isProtobuf(facts)) throw malformed('an object is not kept in JSON')
    const { members, mode, areNamespaces, json } = this.#as
    const stamp = {
      member: members[slot] ?? '',
      mode,
      areNamespaces,
      version: (own: string) => this.version(versions.map((version, at) => (at === slot ? own : version))),
    }
    const shown = stampObject({ json: content, facts }, json, stamp)
    return { content: shown.json, facts: shown.facts }
  }

  /** @param rows of Tables. Default: the items are written when they are sent */
  list(versions: Versions, objects: readonly MemberObject[], end: ListEnd, rows?: readonly Buffer[]): ListPieces {
    const { empty, first, next, last } = this.#frame(this.version(versions), end)
    const itemOf = (one: MemberObject): Buffer => this.#item(this.stamped(one))
    function* written(): Generator<Buffer, undefined> {
      let before = first
      for (const [index, one] of objects.entries()) {
        yield before
        yield rows?.[index] ?? itemOf(one)
        before = next
      }
      yield objects.length === 0 ? empty : last
    }
    const between = next.length * Math.max(0, objects.length - 1)
    const length = rows && (rows.length === 0 ? empty.length : first.length + between + last.length + bytesOfAll(rows))
    return { length, ownBytes: 0, parts: () => partsOf(written()) }
  }

  row(one: MemberObject, nowMs: number): Buffer {
    const { table } = this.#as
    if (table === undefined) throw new Error('it is not shown in Tables')
    return table.row(this.stamped(one), nowMs)
  }

  bookmark(versions: Versions, endsInitialEvents: boolean): Buffer {
    const { kind, apiVersion } = this.#as.partial
      ? PARTIAL
      : { ...this.#as.list, kind: this.#as.list.kind.replace(/List$/, '') }
    const annotations = endsInitialEvents ? { annotations: { [INITIAL_EVENTS_END]: 'true' } } : {}
    const metadata = { resourceVersion: this.version(versions), ...annotations }
    const object = { kind, apiVersion, metadata }
    if (!this.areTables) return this.plainEvent('BOOKMARK', object)
    // kube-apiserver makes a row of it, as of any object.
    const content = Buffer.from(JSON.stringify(object))
    const end = content.length - 1
    const start = end - Buffer.byteLength(JSON.stringify(metadata))
    return Buffer.concat(this.event('BOOKMARK', { content, facts: { metadata: { start, end } } }))
  }

  event(type: EventType, object: EventObject): readonly Buffer[] {
    return this.#sent(this.form.event(type, object))
  }

  /** An event about something else than an object of a member. */
  plainEvent(type: 'BOOKMARK' | 'ERROR', object: object): Buffer {
    return Buffer.concat(this.#sent([Buffer.from(`${JSON.stringify({ type, object })}\n`)]))
  }

  #sent(event: readonly Buffer[]): readonly Buffer[] {
    return this.#as.isWebSocket ? [textHead(bytesOfAll(event)), ...event] : event
  }

  #item({ content, facts }: ObjectBytes): Buffer {
    const { json, partial } = this.#as
    if (isProtobuf(facts)) throw malformed('an object is not kept in JSON')
    if (partial) return Buffer.concat([PARTIAL_HEAD, partialMetadata(content, facts, json), PARTIAL_END])
    return json === 'sorted' ? content : Buffer.concat([OPEN, listItem(content, facts, json)])
  }

  /** The same for all forms: the order of keys says nothing. */
  #frame(resourceVersion: string, end: ListEnd): ListFrame {
    const { partial, table } = this.#as
    const { kind, apiVersion } = partial ? PARTIAL_LIST : this.#as.list
    const metadata = {
      resourceVersion,
      ...(end.continue !== '' && { continue: end.continue }),
      ...(end.remaining !== undefined && { remainingItemCount: end.remaining }),
    }
    if (table !== undefined) return table.frame(metadata)
    const head = `${JSON.stringify({ kind, apiVersion, metadata }).slice(0, -1)},"items":[`
    return {
      empty: Buffer.from(`${head}]}\n`),
      first: Buffer.from(head),
      next: Buffer.from(','),
      last: Buffer.from(']}\n'),
    }
  }
}

/** In front of an item without its kind and apiVersion. */
const OPEN = Buffer.from('{')

function bytesOfAll(parts: readonly Buffer[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}

// Parts of an answer that take long to write, as rows of Tables, for which objects are parsed: they are written before it begins, between turns of others, and
// their memory is the caller's.

interface WrittenAhead {
  /** One for each object. */
  readonly parts: readonly Buffer[]
  readonly bytes: number
}

export async function writeAhead(
  exchange: Exchange,
  objects: readonly MemberObject[],
  write: (one: MemberObject) => Buffer,
): Promise<WrittenAhead | Refusal> {
  const parts: Buffer[] = []
  let bytes = 0
  let failure: Refusal | undefined
  await inSlices(
    exchange,
    objects.map(({ object }) => object),
    () => {
      const one = objects[parts.length]
      if (failure !== undefined || one === undefined) return
      const part = writable(() => write(one))
      if (part === undefined) failure = refuse('internal', 'an object cannot be shown')
      else if (!exchange.takeMemory(part.length)) failure = outOfMemory()
      else {
        parts.push(part)
        bytes += part.length
      }
    },
  )
  if (failure === undefined && parts.length < objects.length) failure = refuse('internal', 'the client has gone')
  if (failure === undefined) return { parts, bytes }
  exchange.giveMemory(bytes)
  return failure
}

/** @param shown in Tables */
export function writeRows(
  exchange: Exchange,
  shown: ShownObjects,
  objects: readonly MemberObject[],
): Promise<WrittenAhead | Refusal> {
  const nowMs = exchange.gw.clock.now()
  return writeAhead(exchange, objects, (one) => shown.row(one, nowMs))
}
