// The filter: answers every request to a cluster that has members, which has no servers of its own. Reads of what is federated are answered from what is
// kept of the members; some requests for one object are handed over to its member; all else is refused, with the address at which a member takes it.

import { answerForm } from '../../cache/core/bytes/answer-form.ts'
import { writable } from '../../cache/core/bytes/malformed.ts'
import { partsOf } from '../../cache/core/bytes/part-reader.ts'
import { negotiateRead } from '../../cache/core/requests/accept.ts'
import { isNamespaces } from '../../cache/core/requests/read-request.ts'
import { deliverList, deliverObject, type Warned } from '../../cache/request/deliver-read.ts'
import type { OpenWatches } from '../../cache/request/open-watches.ts'
import { fieldTerms, MOST_REQUIREMENTS, type Selects, selectionOf } from '../../cache/request/selection.ts'
import { beginWatch, type WatchStart } from '../../cache/request/watch-answer.ts'
import type { CachedCollections } from '../../cache/state/cached-collections.ts'
import type {
  CompiledCluster,
  CompiledFederatedResource,
  CompiledFederation,
} from '../../gateway/core/cluster/compiled-cluster.ts'
import { headerValue } from '../../gateway/core/request/hop-headers.ts'
import type { Decision, RequestFilter } from '../../gateway/request/exchange/decision.ts'
import { asksForWebSocket, openWebSocket } from '../../gateway/request/exchange/open-websocket.ts'
import { type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import type { ContinuePlace } from '../core/continue.ts'
import { type FederatedList, type FederatedRead, type FederatedWatch, federatedReadOf } from '../core/federated-read.ts'
import { federationEpoch } from '../core/federation-epoch.ts'
import { isApiDescription, isHandedOver } from '../core/handed-over.ts'
import type { NamedResource } from '../core/member-scope.ts'
import { compareSlots } from '../core/vectors.ts'
import { writtenRequest } from '../core/writes/written-request.ts'
import type { FederatedCollection, Versions } from '../state/federated-collection.ts'
import type { FederatedCollections } from '../state/federated-collections.ts'
import type { KnownRights } from '../state/known-rights.ts'
import { type AskedMember, type AskedOf, askedMembers, stillMay } from './asked-members.ts'
import { answerDiscovery } from './discovery.ts'
import { handOver, handOverDescription } from './hand-over.ts'
import { handOverWrite } from './hand-over-write.ts'
import { continuedAfter, pageOf } from './list-pages.ts'
import { addedEvent, addedEvents, expiredWatch, type LateProof, MembersWatch, StateProofs } from './members-watch.ts'
import { PageProofs } from './page-proofs.ts'
import { type Awaited, awaitedBy } from './reach-versions.ts'
import {
  notFederated,
  objectMissing,
  objectUnknown,
  outOfMemory,
  readsOnly,
  refuseDuplicate,
  refuseExpired,
  refuseMergedWatch,
  refuseSelector,
  unknownName,
} from './refusals.ts'
import { isReplaced, selectObjects } from './select-objects.ts'
import { selectPage } from './select-page.ts'
import { type MemberObject, ShownObjects, writeAhead, writeRows } from './shown-objects.ts'
import { shownTables } from './tables.ts'

export interface FederatedReadsDeps {
  readonly kept: CachedCollections
  readonly collections: FederatedCollections
  readonly watches: OpenWatches
  readonly known: KnownRights
}

type FederatedCluster = CompiledCluster & { readonly federation: CompiledFederation }

/** Everything that is known of a read before its objects are looked for. */
interface Prepared {
  readonly decision: Decision
  readonly federation: CompiledFederation
  readonly collection: FederatedCollection
  readonly members: readonly AskedMember[]
  readonly awaited: Awaited
  readonly proofs: PageProofs
  readonly states: StateProofs
  /** Every member has answered, and what is kept of it is as new as the answer has to be. */
  readonly isWhole: boolean
  /** A member never had the version behind which the watch is to go on. */
  readonly isExpired: boolean
  readonly shown: ShownObjects
  /** By slot. */
  readonly selects: readonly Selects[]
  readonly warnings: readonly string[]
}

export class FederatedReadsFilter implements RequestFilter {
  readonly #deps: FederatedReadsDeps

  constructor(deps: FederatedReadsDeps) {
    this.#deps = deps
  }

  shadow(): boolean {
    return false
  }

  check(decision: Decision): Refusal | Promise<Refusal | undefined> | undefined {
    const { cluster, info } = decision
    if (!isFederated(cluster)) return undefined
    const { method } = decision.exchange.record
    if (isApiDescription(method, decision.exchange.target, info.path)) return handOverDescription(decision, cluster)
    if (!info.isResourceRequest)
      return answerDiscovery(decision, cluster, cluster.federation).then((refusal) => refusal ?? unanswered(decision))
    if (isHandedOver(method, info)) return handOver(decision, cluster, this.#deps)
    const write = writtenRequest(method, info)
    if (write !== undefined) return handOverWrite(decision, cluster, write, this.#deps)
    if (method !== 'GET' || (info.verb !== 'get' && info.verb !== 'list' && info.verb !== 'watch'))
      return readsOnly(decision, cluster.federation)
    const entry = cluster.federation.resources.find(({ group, version, resource }) => {
      return resource === info.resource && group === info.apiGroup && version === info.apiVersion
    })
    if (entry === undefined || info.subresource !== '') return notFederated(cluster, info.path)
    const { exchange } = decision
    if (!exchange.requestEnded || exchange.body !== undefined)
      return refuse('bad-request', 'a read must not have a body')
    const { target } = exchange
    const queryAt = target.indexOf('?')
    const read = federatedReadOf(info.verb, queryAt < 0 ? '' : target.slice(queryAt + 1))
    if ('invalid' in read) return refuse('bad-request', read.invalid)
    return this.#answer(decision, cluster, entry, read).then((refusal) => refusal ?? unanswered(decision))
  }

  async #answer(
    decision: Decision,
    cluster: FederatedCluster,
    entry: CompiledFederatedResource,
    read: FederatedRead,
  ): Promise<Refusal | undefined> {
    const after = continuedAfter(read)
    if (after !== undefined && 'refused' in after) return after
    const awaited = awaitedBy(read, after, cluster.federation)
    const proofs = new PageProofs(decision, { caches: this.#deps.kept, read, after, awaited })
    const states = new StateProofs(decision, this.#deps.kept)
    const prepared = await this.#prepare(decision, cluster, entry, read, { awaited, proofs, states })
    if ('refused' in prepared) return prepared
    if (awaited.kind === 'expired' && !isResumed(read)) return refuseExpired()
    switch (read.kind) {
      case 'get':
        return this.#get(prepared)
      case 'list':
        return await this.#list(prepared, read, after)
      case 'watch':
        return await this.#watch(prepared, read)
    }
  }

  async #prepare(
    decision: Decision,
    cluster: FederatedCluster,
    entry: CompiledFederatedResource,
    read: FederatedRead,
    { awaited, proofs, states }: Pick<Prepared, 'awaited' | 'proofs' | 'states'>,
  ): Promise<Prepared | Refusal> {
    const { info, exchange } = decision
    const { federation } = cluster
    // Indented JSON, as curl gets of a kube-apiserver, is not made here.
    const head = { accept: headerValue(exchange.list, 'accept') ?? '', userAgent: '' }
    const wanted = negotiateRead(read.kind, head, false, true)
    if (wanted?.encoding !== 'json') return refuse('federated-encoding', 'only application/json is served here')
    const collection = this.#deps.collections.of(cluster.name, federation, entry)
    // For a moment, after they have changed.
    if (collection === undefined) return refuse('member-unavailable', 'the members are not known yet')
    if (read.kind === 'watch' && federation.mode === 'merged' && !entry.uniqueNames) return refuseMergedWatch()
    // Names in it are looked for in each member, before it is known whether the caller may read there.
    if (fieldTerms(read.fieldSelector) > MOST_REQUIREMENTS) return refuseSelector()
    const resource = resourceOf(decision, federation, collection)
    const asked = {
      namespace: resource.isNamespaces ? '' : info.namespace,
      name: info.name,
      fieldSelector: read.fieldSelector,
      labelSelector: read.labelSelector,
    }
    const unknown = unknownName(federation, asked, resource)
    if (unknown !== undefined) return unknown
    const { known, kept: caches } = this.#deps
    const isMarked = read.kind === 'watch' && read.awaitsMark && awaited.kind === 'proof'
    const reach: AskedOf['reach'] = (member, ms, inFront) =>
      isMarked ? states.reach(member, ms) : proofs.reach(member, ms, inFront)
    const asking = { federation, collection, asked, resource, known, reach }
    const found = await readable(() => askedMembers(decision, asking))
    if ('refused' in found) return found
    const { members, warnings, isWhole, isExpired } = found
    const [first] = members
    const selects: Selects[] = federation.members.map(() => NONE)
    for (const { slot, scope, kept } of members) {
      const of = { fieldSelector: scope.fieldSelector, labelSelector: read.labelSelector }
      const some = read.kind === 'get' ? ALL : selectionOf(of, scope.namespace, kept)
      if (some === undefined) return refuseSelector()
      selects[slot] = some
    }
    const json = first?.kept.form === 'sorted' ? 'sorted' : 'declared'
    const form = answerForm(json, wanted)
    if (form === undefined) return refuse('federated-encoding', 'only application/json is served here')
    const tables = wanted.table && shownTables(exchange, form, json, wanted.table, entry, members, caches)
    if (tables !== undefined && 'refused' in tables) return tables
    const shown = new ShownObjects(
      {
        epoch: federationEpoch(federation.members),
        members: federation.members.map(({ name }) => name),
        visible: federation.members.map((_, slot) => members.some((member) => member.slot === slot)),
        mode: federation.mode,
        areNamespaces: resource.isNamespaces,
        json,
        partial: wanted.partial,
        form: tables?.form ?? form,
        table: tables?.writer,
        list: first?.kept.list ?? { kind: 'List', apiVersion: 'v1' },
        isWebSocket: read.kind === 'watch' && asksForWebSocket(exchange),
      },
      collection,
    )
    return {
      decision,
      federation,
      collection,
      members,
      awaited,
      proofs,
      states,
      isWhole,
      isExpired,
      shown,
      selects,
      warnings,
    }
  }

  #get({ decision, federation, members, shown, isWhole, warnings }: Prepared): Refusal | undefined {
    const found = members.flatMap(({ slot, scope, kept }) => {
      const object = kept.get(scope.namespace, scope.name)
      return object === undefined ? [] : [{ slot, object }]
    })
    const [one, second] = found
    if (one !== undefined && second !== undefined)
      return refuseDuplicate(decision.info, federation, [one.slot, second.slot])
    // A controller creates again what is not found.
    if (one === undefined) return isWhole ? objectMissing(decision) : objectUnknown(decision, warnings)
    const answer = writable(() => shown.form.object(shown.stamped(one)))
    if (answer === undefined) return refuse('internal', 'the object cannot be shown')
    if (!decision.exchange.takeMemory(answer.length)) return outOfMemory()
    decision.warnings = [...decision.warnings, ...warnings]
    decision.deliver = deliverObject(warned(members), answer, shown.form, COUNTED)
    return undefined
  }

  async #list(prepared: Prepared, read: FederatedList, after: ContinuePlace | undefined): Promise<Refusal | undefined> {
    const { decision, federation, collection, members, awaited, proofs, shown, selects } = prepared
    const { exchange } = decision
    const { limit } = read
    const isExact = awaited.kind === 'versions' && awaited.isExact
    const visibleOf = (versions: Versions): Versions => shown.visibleOf(versions)
    const of = { exchange, collection, members, selects, proofs, isExact, after, limit, visibleOf }
    const found = await selectPage(of)
    if ('refused' in found) return found
    const { selected, end } = found
    const hasSelectors = read.labelSelector !== '' || read.fieldSelector !== ''
    const page = pageOf(selected, hasSelectors, end, (versions) => shown.vector(versions))
    decision.warnings = [
      ...decision.warnings,
      ...prepared.warnings,
      ...found.warnings,
      ...(federation.mode === 'merged' ? duplicates(page.objects) : []),
    ]
    const rows = shown.areTables ? await writeRows(exchange, shown, page.objects) : undefined
    if (rows !== undefined && 'refused' in rows) return rows
    const pieces = shown.list(selected.versions, page.objects, page, rows?.parts)
    decision.deliver = deliverList(warned(members), pieces, bytesOf(page.objects), shown.form, COUNTED)
    return undefined
  }

  async #watch(prepared: Prepared, read: FederatedWatch): Promise<Refusal | undefined> {
    const { decision, collection, members, shown, selects } = prepared
    const { watches, known } = this.#deps
    const { late: proved } = prepared.states
    const webSocket = shown.isWebSocket ? openWebSocket(decision.exchange) : undefined
    if (webSocket !== undefined && 'refused' in webSocket) return webSocket
    const isState = read.initial !== undefined
    const begin = isState ? await this.#fromState(prepared) : await this.#resumed(prepared)
    if ('refused' in begin) return begin
    if ('expired' in begin) {
      decision.deliver = expiredWatch(shown, webSocket)
      return undefined
    }
    const { initial, versions, before, from } = begin
    const added = addedEvent(shown, isState ? undefined : before)
    const written = shown.areTables ? await writeAhead(decision.exchange, initial, added) : undefined
    if (written !== undefined && 'refused' in written) return written
    // While they were written.
    if (written !== undefined && isReplaced(collection, members))
      return refuse('member-unavailable', 'a member was read again in the meantime')
    const start: WatchStart = {
      streamType: shown.form.streamType,
      webSocket,
      warned: warned(members),
      state:
        isState || initial.length > 0
          ? {
              objects: initial.length,
              bytes: bytesOf(initial),
              events: partsOf(written?.parts.values() ?? addedEvents(initial, added)),
              ownBytes: written?.bytes ?? 0,
            }
          : undefined,
      from,
      bookmarks: read.bookmarks,
      timeoutSeconds: read.timeoutSeconds,
      late: proved,
    }
    const late = proved && lateProof(proved)
    decision.warnings = [...decision.warnings, ...prepared.warnings]
    decision.deliver = (permit) => {
      const source = new MembersWatch(collection, { shown, selects, isState, versions, late })
      return beginWatch(permit, source, start, watches, () => stillMay(permit, members, known))
    }
    return undefined
  }

  async #fromState({ decision, collection, members, selects }: Prepared): Promise<Beginning> {
    const { end } = collection.history
    const selected = await selectObjects(decision.exchange, collection, members, selects)
    if (selected === 'memory') return outOfMemory()
    if (typeof selected === 'string') return refuse('member-unavailable', 'a member was read again in the meantime')
    const { objects, versions } = selected
    return { initial: objects, versions, before: versions, from: end }
  }

  /** Behind what the client knows; of members that it has not heard of, it gets all objects first. */
  async #resumed(prepared: Prepared): Promise<Beginning> {
    const { decision, collection, members, awaited, isExpired, selects, shown } = prepared
    if (awaited.kind !== 'resume' || isExpired) return EXPIRED
    const before = shown.visibleOf(awaited.versions)
    const joined = members.filter(({ slot }) => before[slot] === '')
    const present = collection.versions
    const selected = await selectObjects(decision.exchange, collection, joined, selects)
    if (selected === 'memory') return outOfMemory()
    if (typeof selected === 'string') return refuse('member-unavailable', 'a member was read again in the meantime')
    const versions = before.map((version, slot) =>
      joined.some((member) => member.slot === slot) ? (present[slot] ?? '') : version,
    )
    const place = collection.behind(versions)
    if (place.kind === 'expired') return EXPIRED
    const initial = [...selected.objects].sort(bySlotAndVersion)
    return { initial, versions, before, from: place.index }
  }
}

type Beginning =
  | {
      readonly initial: readonly MemberObject[]
      readonly versions: Versions
      readonly before: Versions
      readonly from: number
    }
  | { readonly expired: true }
  | Refusal

const EXPIRED = { expired: true } as const
const ALL: Selects = () => true
const NONE: Selects = () => false

function lateProof(proved: Promise<boolean>): LateProof {
  const late: { isProved: boolean | undefined } = { isProved: undefined }
  void proved.then((isProved) => {
    late.isProved = isProved
  })
  return late
}

/** It begins behind a version. */
function isResumed(read: FederatedRead): boolean {
  return read.kind === 'watch' && read.initial === undefined
}

function isFederated(cluster: CompiledCluster): cluster is FederatedCluster {
  return cluster.federation !== undefined
}

/** What its requests are counted by is the code of their answers. */
const COUNTED = (): void => undefined

function resourceOf(
  { info }: Decision,
  { members }: CompiledFederation,
  collection: FederatedCollection,
): NamedResource {
  const kept = members.flatMap((_, slot) => collection.member(slot) ?? [])
  return {
    isNamespaces: isNamespaces(info.apiGroup, info.resource),
    isNamespaced:
      !isNamespaces(info.apiGroup, info.resource) &&
      // Without any object it is not known: most resources are.
      (info.namespace !== '' || kept.some((one) => one.isNamespaced) || kept.every(({ size }) => size === 0)),
  }
}

async function readable<T>(read: () => Promise<T>): Promise<T | Refusal> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof SyntaxError) return refuse('bad-request', error.message)
    throw error
  }
}

/** Deprecated versions: of any member. */
function warned(members: readonly AskedMember[]): Warned {
  return { warnings: [...new Set(members.flatMap(({ kept }) => kept.warnings))] }
}

/** As the members have them. */
function bytesOf(objects: readonly MemberObject[]): number {
  return objects.reduce((sum, { object }) => sum + object.bytes, 0)
}

function bySlotAndVersion(a: MemberObject, b: MemberObject): number {
  return a.slot - b.slot || compareSlots(a.object.facts.resourceVersion, b.object.facts.resourceVersion)
}

/** Nothing of a federated cluster is forwarded: it has no servers. */
function unanswered(decision: Decision): Refusal | undefined {
  return decision.deliver === undefined ? refuse('internal', 'the read was not answered') : undefined
}

/** With mode merged, names may be there twice. Prefixed ones never are. */
function duplicates(objects: readonly MemberObject[]): readonly string[] {
  if (objects.length === 0 || objects[0]?.slot === objects.at(-1)?.slot) return []
  const keys = new Set(objects.map(({ object }) => object.key))
  const more = objects.length - keys.size
  return more === 0 ? [] : [`${more} of the objects have the same name as an object of another member`]
}
