// DEMO ONLY. get, list, create and update over the store, with the metadata that a server owns
// (apiserver/pkg/registry/rest, generic/registry/store.go).

import { randomInt, randomUUID } from 'node:crypto'
import { sameJson } from '../../core/text/same-json.ts'
import { alreadyExists, badRequest, conflict, invalid, notFound } from './api-error.ts'
import { type Answer, type Call, type ClusterState, jsonAnswer, jsonBody, queryOf, wantsTable } from './call.ts'
import { type DemoObject, isJson, type Json, textAt, valueAt } from './json.ts'
import { groupVersionOf, KINDS, type Resource } from './resources.ts'
import { parseSelectors } from './selectors.ts'
import { tableOf } from './tables.ts'

export function getObject(state: ClusterState, of: Resource, call: Call): Answer {
  const object = existing(state, of, call)
  if (!wantsTable(call.accept)) return jsonAnswer(object)
  return jsonAnswer(tableOf(of, [object], object.metadata.resourceVersion ?? '', Date.now()))
}

export function listObjects(state: ClusterState, of: Resource, call: Call): Answer {
  const resourceVersion = String(state.store.version)
  const items = selected(state, of, call)
  if (wantsTable(call.accept)) return jsonAnswer(tableOf(of, items, resourceVersion, Date.now()))
  return jsonAnswer(listAnswer(of, items, resourceVersion))
}

export function listAnswer(of: Resource, items: readonly DemoObject[], resourceVersion: string): Json {
  return { kind: `${of.kind}List`, apiVersion: groupVersionOf(of), metadata: { resourceVersion }, items }
}

export function createObject(state: ClusterState, of: Resource, call: Call): Answer {
  return jsonAnswer(insert(state, of, call, jsonBody(call)), 201)
}

/** Puts what the client sent into the store, as a new object. */
export function insert(state: ClusterState, of: Resource, call: Call, sent: Json): DemoObject {
  const object = newObject(of, call.info.namespace, sent)
  const { name, namespace = '' } = object.metadata
  if (of.namespaced && state.store.get(KINDS.namespaces, '', namespace) === undefined) {
    throw notFound(KINDS.namespaces, namespace)
  }
  if (state.store.get(of, namespace, name) !== undefined) throw alreadyExists(of, name)
  if (queryOf(call, 'dryRun') === 'All') return object
  const stored = state.store.put(of, object)
  if (of === KINDS.namespaces) addServiceAccount(state, name)
  return stored
}

/** Every namespace has its `default` service account: without it no pod starts. */
export function addServiceAccount(state: ClusterState, namespace: string): void {
  const sent = { metadata: { name: 'default' } }
  state.store.put(KINDS.serviceaccounts, newObject(KINDS.serviceaccounts, namespace, sent))
}

/** An object as a server completes it: name, uid, creation time, kind. Throws for a bad name. */
export function newObject(of: Resource, namespace: string, sent: Json): DemoObject {
  const generateName = textAt(sent, 'metadata.generateName')
  const name = textAt(sent, 'metadata.name') || (generateName === '' ? '' : generateName + randomSuffix())
  if (!NAME.test(name)) throw invalid(of, name, 'metadata.name', `Invalid value: ${JSON.stringify(name)}`)
  const sentNamespace = textAt(sent, 'metadata.namespace')
  if (of.namespaced && sentNamespace !== '' && sentNamespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  const metadata = valueAt(sent, 'metadata')
  return {
    ...sent,
    ...DEFAULTS[of.resource]?.(sent),
    apiVersion: groupVersionOf(of),
    kind: of.kind,
    metadata: {
      ...(isJson(metadata) ? metadata : {}),
      name,
      ...(of.namespaced ? { namespace } : {}),
      uid: randomUUID(),
      generation: 1,
      creationTimestamp: new Date().toISOString().replace(/\.\d+/, ''),
    },
  }
}

/** Of a stored object to what a client wants it to be; a change of nothing changes nothing. */
export function replace(state: ClusterState, of: Resource, call: Call, current: DemoObject, wanted: Json): DemoObject {
  const { name, uid, namespace, creationTimestamp, resourceVersion } = current.metadata
  const version = textAt(wanted, 'metadata.resourceVersion')
  if (version !== '' && version !== resourceVersion) throw conflict(of, name)
  const wantedUid = textAt(wanted, 'metadata.uid')
  if (wantedUid !== '' && wantedUid !== uid) throw conflict(of, name)
  const metadata = valueAt(wanted, 'metadata')
  const next: DemoObject = {
    ...wanted,
    apiVersion: current.apiVersion,
    kind: current.kind,
    metadata: {
      ...(isJson(metadata) ? metadata : {}),
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...endingOf(current),
      generation: current.metadata.generation ?? 1,
    },
  }
  if (sameJson(current, next)) return current
  const generation = next.metadata.generation ?? 1
  const raised = sameJson(desired(current), desired(next)) ? generation : generation + 1
  const changed: DemoObject = { ...next, metadata: { ...next.metadata, generation: raised } }
  return queryOf(call, 'dryRun') === 'All' ? changed : state.store.put(of, changed)
}

/** Once an object is being deleted it stays so. */
function endingOf({ metadata: { deletionTimestamp, deletionGracePeriodSeconds } }: DemoObject): Json {
  return deletionTimestamp === undefined ? {} : { deletionTimestamp, deletionGracePeriodSeconds }
}

/** What `generation` counts the changes of. */
function desired({ metadata: _metadata, status: _status, ...rest }: DemoObject): Json {
  return rest
}

export function existing(state: ClusterState, of: Resource, call: Call): DemoObject {
  const { namespace, name } = call.info
  const object = state.store.get(of, of.namespaced ? namespace : '', name)
  if (object === undefined) throw notFound(of, name)
  return object
}

export function selected(state: ClusterState, of: Resource, call: Call): DemoObject[] {
  const selector = parseSelectors(call.info.labelSelector, call.info.fieldSelector)
  return state.store.list(of, of.namespaced ? call.info.namespace : '').filter(selector)
}

const NAME = /^[a-z0-9]([-a-z0-9.:]{0,251}[a-z0-9])?$/
const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789'

/** apiserver/pkg/storage/names. */
export function randomSuffix(length = 5): string {
  let text = ''
  while (text.length < length) text += SUFFIX_LETTERS.charAt(randomInt(SUFFIX_LETTERS.length))
  return text
}

/** Defaults without which kubectl shows nonsense. */
const DEFAULTS: Readonly<Record<string, (sent: Json) => Json>> = {
  namespaces: () => ({ status: { phase: 'Active' } }),
  pods: (pod) => ({ status: { phase: 'Pending', ...objectOr(pod, 'status') } }),
  deployments: (one) => ({ spec: { replicas: 1, ...objectOr(one, 'spec') }, status: {} }),
  secrets: (secret) => ({ type: textAt(secret, 'type') || 'Opaque' }),
  services: (service) => ({ spec: { type: 'ClusterIP', clusterIP: clusterIP(), ...objectOr(service, 'spec') } }),
}

function objectOr(value: Json, field: string): Json {
  const found = value[field]
  return isJson(found) ? found : {}
}

function clusterIP(): string {
  return `10.96.${randomInt(256)}.${1 + randomInt(254)}`
}
