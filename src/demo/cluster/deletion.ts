// DEMO ONLY. DELETE of an object and of a collection, and evictions of pods: preconditions, dry run, and pods that take their
// time to end (apiserver/pkg/registry/rest/delete.go, pkg/registry/core/pod/rest/eviction.go).

import { badRequest, conflict } from './api-error.ts'
import { type Answer, type Call, type ClusterState, jsonAnswer, jsonBody, queryOf } from './call.ts'
import { type DemoObject, isJson, type Json, listAt, numberAt, objectAt, textAt } from './json.ts'
import { existing, listAnswer, selected } from './objects.ts'
import { KINDS, RESOURCES, type Resource } from './resources.ts'

export function deleteObject(state: ClusterState, of: Resource, call: Call): Answer {
  const object = existing(state, of, call)
  const ending = end(state, of, object, optionsOf(call))
  return ending === undefined ? jsonAnswer(success(of, object)) : jsonAnswer(ending)
}

export function deleteCollection(state: ClusterState, of: Resource, call: Call): Answer {
  const options = optionsOf(call)
  const objects = selected(state, of, call)
  const version = state.store.version
  const ended = objects.map((object) => end(state, of, object, options) ?? object)
  return jsonAnswer(listAnswer(of, ended, String(version)))
}

/** policy/v1 Eviction. The demo has no PodDisruptionBudgets. */
export function evictPod(state: ClusterState, call: Call): Answer {
  const of = KINDS.pods
  const eviction = jsonBody(call)
  const name = textAt(eviction, 'metadata.name')
  if (name !== '' && name !== call.info.name) throw badRequest('name in URL does not match name in Eviction object')
  const deleteOptions = eviction['deleteOptions']
  end(state, of, existing(state, of, call), readOptions(isJson(deleteOptions) ? deleteOptions : queryOptions(call)))
  return jsonAnswer({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }, 201)
}

/** Of an object whose deletion nobody asked for: the controllers' own work. */
export function endPod(state: ClusterState, pod: DemoObject): void {
  end(state, KINDS.pods, pod, NO_OPTIONS)
}

/** Where a kubelet would: takes pods away whose containers have had the time to stop. */
export function sweepEndedPods(state: ClusterState, nowMs: number): void {
  for (const pod of state.store.list(KINDS.pods)) {
    const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata
    if (deletionTimestamp === undefined) continue
    const beganMs = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000
    if (nowMs >= beganMs + Math.min(deletionGracePeriodSeconds * 1000, STOP_MS)) state.store.delete(KINDS.pods, pod)
  }
}

/** How long the containers of the demo take to stop. */
const STOP_MS = 2_000
/** Of a pod that says nothing else (core/v1 defaults). */
const GRACE_SECONDS = 30

interface DeleteOptions {
  readonly dryRun: boolean
  readonly uid: string
  readonly resourceVersion: string
  /** undefined = the pod's own. */
  readonly gracePeriodSeconds: number | undefined
}

const NO_OPTIONS: DeleteOptions = { dryRun: false, uid: '', resourceVersion: '', gracePeriodSeconds: undefined }

/** A body makes the query meaningless. */
function optionsOf(call: Call): DeleteOptions {
  return readOptions(call.body.length === 0 ? queryOptions(call) : jsonBody(call))
}

function queryOptions(call: Call): Json {
  const grace = queryOf(call, 'gracePeriodSeconds')
  return { dryRun: [queryOf(call, 'dryRun')], ...(grace === '' ? {} : { gracePeriodSeconds: Number(grace) }) }
}

function readOptions(options: Json): DeleteOptions {
  const grace = options['gracePeriodSeconds']
  return {
    dryRun: listAt(options, 'dryRun').includes('All'),
    uid: textAt(options, 'preconditions.uid'),
    resourceVersion: textAt(options, 'preconditions.resourceVersion'),
    gracePeriodSeconds: typeof grace === 'number' ? grace : undefined,
  }
}

/** The object as it will stay for a while; undefined = it is gone. @throws {ApiError} 409 */
function end(state: ClusterState, of: Resource, object: DemoObject, options: DeleteOptions): DemoObject | undefined {
  checkPreconditions(of, object, options)
  const grace = of === KINDS.pods ? graceOf(object, options) : 0
  if (grace === 0) {
    if (!options.dryRun) remove(state, of, object)
    return undefined
  }
  const { metadata } = object
  if (metadata.deletionTimestamp !== undefined) return object
  const deletionTimestamp = new Date(Date.now() + grace * 1000).toISOString().replace(/\.\d+/, '')
  const ending = { ...object, metadata: { ...metadata, deletionTimestamp, deletionGracePeriodSeconds: grace } }
  return options.dryRun ? ending : state.store.put(of, ending)
}

function checkPreconditions(of: Resource, { metadata }: DemoObject, { uid, resourceVersion }: DeleteOptions): void {
  const differs = (what: string, wanted: string, found: string | undefined, why: string): void => {
    if (wanted === '' || wanted === found) return
    const fields = `the ${what} in the precondition (${wanted}) does not match the ${what} in record (${found})`
    throw conflict(of, metadata.name, `${fields}. The object might have been ${why}`)
  }
  differs('UID', uid, metadata.uid, 'deleted and then recreated')
  differs('ResourceVersion', resourceVersion, metadata.resourceVersion, 'modified')
}

/** What no kubelet has started goes at once. */
function graceOf(pod: DemoObject, { gracePeriodSeconds }: DeleteOptions): number {
  if (textAt(pod, 'spec.nodeName') === '') return 0
  return gracePeriodSeconds ?? numberAt(objectAt(pod, 'spec'), 'terminationGracePeriodSeconds', GRACE_SECONDS)
}

function remove(state: ClusterState, of: Resource, object: DemoObject): void {
  if (of === KINDS.namespaces) {
    for (const inside of RESOURCES) {
      if (!inside.namespaced) continue
      for (const one of state.store.list(inside, object.metadata.name)) state.store.delete(inside, one)
    }
  }
  state.store.delete(of, object)
}

function success({ group, resource }: Resource, { metadata: { name, uid } }: DemoObject): Json {
  const details = { name, group, kind: resource, uid }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
}
