// Hands a write over to the member that it is for: path, query and body with the member's names and versions, and its answer with those of all members. The
// member decides about it like about any other.

import { MalformedError, writable } from '../../cache/core/bytes/malformed.ts'
import { negotiateRead } from '../../cache/core/requests/accept.ts'
import { isNamespaces } from '../../cache/core/requests/read-request.ts'
import type { CompiledFederation, CompiledMember } from '../../gateway/core/cluster/compiled-cluster.ts'
import { headerValue } from '../../gateway/core/request/hop-headers.ts'
import type { RequestInfo } from '../../gateway/core/request/request-info.ts'
import { fieldsForBody, JSON_TYPE, UnreadableBody } from '../../gateway/core/request/write-envelope.ts'
import { queryOf } from '../../gateway/core/request/write-query.ts'
import { readWrite, type WrittenBody } from '../../gateway/request/calls/request-bodies.ts'
import type { AnswerChange } from '../../gateway/request/exchange/answer-change.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { isDnsLabel } from '../../kit/api/validation/name-syntax.ts'
import { isRefusal, type Refusal, refuse } from '../../kit/core/refusal/refusal.ts'
import { YamlTooLong } from '../../kube/core/objects/strict-decode.ts'
import { federationEpoch } from '../core/federation-epoch.ts'
import { objectPath } from '../core/handed-over.ts'
import { userInMember } from '../core/mapped-user.ts'
import { type NamedResource, scopeInMember } from '../core/member-scope.ts'
import { encodeVector } from '../core/vectors.ts'
import { type AnswerStamp, shownAnswer } from '../core/writes/shown-answer.ts'
import { type ChangeField, changeFor, memberOfNew, StaleVersion } from '../core/writes/written-fields.ts'
import { isPathName, type WrittenRequest, writtenBody, writtenQuery } from '../core/writes/written-request.ts'
import { type FederatedUpstream, federatedEntry, type HandOverDeps, type HandOverPlace, placeOf } from './hand-over.ts'
import { memberForbidden, notFederated, objectMissing, readsOnly } from './refusals.ts'

/** A write of an object that is not there yet and has no namespace is for the member that its body names. */
const IN_BODY = 'in-body'

/** @returns undefined = the client has gone, or a member gets it */
export async function handOverWrite(
  decision: Decision,
  cluster: FederatedUpstream,
  { body: shape, isCollection }: WrittenRequest,
  deps: HandOverDeps,
): Promise<Refusal | undefined> {
  const { info, exchange, caller } = decision
  const { federation } = cluster
  const entry = federatedEntry(federation, info)
  if (entry === undefined || federation.mode === 'merged')
    return shape === 'none' ? notFederated(cluster, info.path) : readsOnly(decision, federation)
  if (decision.isUpgrade) return refuse('bad-request', 'a write cannot be upgraded')
  const accepted = acceptOf(decision, isCollection)
  if (accepted === undefined) return refuse('federated-encoding', 'only application/json is served here')
  const resource = resourceOf(info)
  const isNew = info.name === '' && !resource.isNamespaced
  // Rights come before work.
  const place = isNew ? IN_BODY : await placeOf(decision, cluster, entry, resource, deps)
  if (place !== IN_BODY && isRefusal(place)) return place
  const trusting = place === IN_BODY ? federation.members.find(({ trustsUsers }) => trustsUsers) : place.member
  if (trusting === undefined || userInMember(caller.user, trusting.trustsUsers) === undefined)
    return memberForbidden(decision, trusting?.name ?? federation.members.map(({ name }) => name).join(', '))
  const read = await bodyOf(decision, shape)
  if (isRefusal(read)) return read
  if (exchange.gone) return undefined
  return refusing(decision, () => {
    const found = place === IN_BODY ? placeOfNew(read, federation, resource) : place
    if (found === undefined) return objectMissing(decision)
    const user = userInMember(caller.user, found.member.trustsUsers)
    if (user === undefined) return memberForbidden(decision, found.member.name)
    if (found.namespace !== '' && !isDnsLabel(found.namespace)) return objectMissing(decision)
    if (found.name !== '' && !isPathName(found.name)) return objectMissing(decision)
    const { namespace, name } = info
    const { members } = federation
    const change = changeFor({ members, slot: found.slot, shown: { namespace, name }, inMember: found, resource })
    const written = shape === 'none' ? undefined : writtenBody(shape, read.contentType, read.body, change)
    decision.handOver = {
      member: found.member.cluster,
      user,
      target: targetOf(decision, found, resource, isCollection, change),
      renamed: {
        fields: fieldsFor(exchange.head.fields, accepted, read.contentType, written),
        body: written,
        answer: answerChange(federation, found, resource, isCollection),
      },
    }
    decision.filters.skipRest(decision)
    return undefined
  })
}

function resourceOf({ apiGroup, resource, namespace }: RequestInfo): NamedResource {
  const areNamespaces = isNamespaces(apiGroup, resource)
  return { isNamespaces: areNamespaces, isNamespaced: !areNamespaces && namespace !== '' }
}

const NO_BODY: WrittenBody = { contentType: '', body: Buffer.alloc(0) }

async function bodyOf({ exchange }: Decision, shape: WrittenRequest['body']): Promise<WrittenBody | Refusal> {
  if (shape !== 'none') return await readWrite(exchange)
  if (!exchange.requestEnded || exchange.body !== undefined) return refuse('bad-request', 'a read must not have a body')
  return NO_BODY
}

/** What is thrown at a body that is not handed over. */
function refusing(decision: Decision, act: () => Refusal | undefined): Refusal | undefined {
  try {
    return act()
  } catch (error) {
    if (error instanceof UnreadableBody) return refuse(UNREADABLE_BODY[error.code], error.message)
    if (error instanceof YamlTooLong) return refuse('body-too-large', error.message)
    if (error instanceof StaleVersion) return refuseStale(decision, error.message)
    if (!(error instanceof MalformedError) && !(error instanceof SyntaxError)) throw error
    return refuse('bad-request', `the body or the query of the request cannot be read: ${error.message}`)
  }
}

const UNREADABLE_BODY = { 400: 'bad-request', 413: 'body-too-large', 415: 'unsupported-media-type' } as const

/** As kube-apiserver says it: clients read again, and write what they then have. */
function refuseStale({ info: { apiGroup, resource, name } }: Decision, why: string): Refusal {
  const what = apiGroup === '' ? resource : `${resource}.${apiGroup}`
  return refuse(
    'federated-write-stale',
    `Operation cannot be fulfilled on ${what} "${name}": the object has been modified; please apply your changes to the latest version and try again: its resourceVersion cannot be compared: ${why}`,
    { object: { kind: resource, name } },
  )
}

/** By its name, or what its name is to begin with. */
function placeOfNew(
  { contentType, body }: WrittenBody,
  { members }: CompiledFederation,
  resource: NamedResource,
): HandOverPlace | undefined {
  let [name, generateName] = ['', '']
  writtenBody('object', contentType, body, (field, text) => {
    if (field === 'name') name = text
    if (field === 'generateName') generateName = text
    return text
  })
  const member = memberOfNew(name === '' ? generateName : name, resource)
  const slot = members.findIndex((one) => one.name === member)
  const found: CompiledMember | undefined = members[slot]
  return found && { member: found, slot, namespace: '', name: '' }
}

function targetOf(
  { info, exchange }: Decision,
  { member, namespace, name }: HandOverPlace,
  resource: NamedResource,
  isCollection: boolean,
  change: ChangeField,
): string {
  const path = objectPath({ ...info, namespace, name })
  const query = queryOf(exchange.target)
  if (query === '') return path
  const asked = { namespace: info.namespace, name: '' }
  const selectorOf = (fieldSelector: string): string => {
    const scope = isCollection
      ? scopeInMember(member.name, { ...asked, fieldSelector }, { ...resource, mode: 'prefixed' }, () => undefined)
      : { fieldSelector }
    if (scope === undefined) throw new UnreadableBody(400, 'the fieldSelector names objects of another namespace')
    return scope.fieldSelector
  }
  const versionOf = (shown: string): string => change('resourceVersion', shown)
  return `${path}?${writtenQuery(query, isCollection, { resourceVersion: versionOf, fieldSelector: selectorOf })}`
}

/** JSON, and metadata alone if that is wanted: it is what is renamed. undefined = the client takes none. */
function acceptOf({ exchange }: Decision, isCollection: boolean): string | undefined {
  const sent = headerValue(exchange.list, 'accept') ?? ''
  // kubectl prefers a Table of what it reads, and takes objects as well.
  const others = sent.split(',').filter((clause) => !clause.includes('as=Table'))
  const accept = others.length === 0 ? sent : others.join(',')
  const wanted = negotiateRead(isCollection ? 'list' : 'get', { accept, userAgent: '' }, false)
  if (wanted?.encoding !== 'json') return undefined
  if (!wanted.partial) return JSON_TYPE
  return `application/json;as=PartialObjectMetadata${isCollection ? 'List' : ''};g=meta.k8s.io;v=v1`
}

function fieldsFor(fields: HeaderList, accept: string, contentType: string, body: Buffer | undefined): HeaderList {
  const kept = fields.filter((_, at) => !REPLACED.has(fields[at - (at % 2)] ?? ''))
  const ofBody =
    body === undefined || body.length === 0 ? kept : fieldsForBody(kept, contentType || JSON_TYPE, body.length)
  return [...ofBody, 'accept', accept, 'accept-encoding', 'identity']
}

const REPLACED: ReadonlySet<string> = new Set(['accept', 'accept-encoding'])

/** As of an object that is read (kube/core/answers/answer-limits.ts). */
export const MAX_SHOWN_ANSWER_BYTES: number = 10 * 1024 * 1024
/** Some thousand objects, which are all changed in one turn. */
export const MAX_SHOWN_LIST_BYTES: number = 1024 * 1024

/** Versions of other members are not in what is shown of one object, as in a GET of it. */
function answerChange(
  { members, mode }: CompiledFederation,
  { member, slot }: HandOverPlace,
  { isNamespaces: areNamespaces, isNamespaced }: NamedResource,
  isCollection: boolean,
): AnswerChange {
  const epoch = federationEpoch(members)
  const version = (own: string): string =>
    encodeVector({ epoch, versions: members.map((_, at) => (at === slot ? own : '')) })
  const stamp: AnswerStamp = { member: member.name, mode, areNamespaces, isNamespaced, isList: isCollection, version }
  return {
    maxBytes: isCollection ? MAX_SHOWN_LIST_BYTES : MAX_SHOWN_ANSWER_BYTES,
    change: (code, contentType, body) => {
      const [type = ''] = contentType.split(';', 1)
      // A text in the words of the member.
      if (code >= FIRST_ERROR && type === 'text/plain') return body
      return type === JSON_TYPE ? writable(() => shownAnswer(body, stamp)) : undefined
    },
    instead: (code) => (isCollection && code === OK ? SUCCESS : undefined),
  }
}

const OK = 200
const FIRST_ERROR = 400
/** As kube-apiserver answers where its storage does not tell what was deleted (apiserver/pkg/endpoints/handlers/delete.go). */
const SUCCESS = Buffer.from('{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":200}\n')
