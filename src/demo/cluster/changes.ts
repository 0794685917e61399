// DEMO ONLY. PUT and PATCH, on objects and on their subresources status and scale.

import { ApiError, badRequest } from './api-error.ts'
import { type Answer, type Call, type ClusterState, jsonAnswer, jsonBody, parsedBody } from './call.ts'
import { type DemoObject, isJson, type Json, numberAt, objectAt, valueAt } from './json.ts'
import { existing, insert, replace } from './objects.ts'
import { jsonPatch, mergePatch, strategicPatch } from './patch.ts'
import type { Resource } from './resources.ts'

export function updateObject(state: ClusterState, of: Resource, call: Call): Answer {
  const current = existing(state, of, call)
  return jsonAnswer(store(state, of, call, current, jsonBody(call)))
}

export function patchObject(state: ClusterState, of: Resource, call: Call): Answer {
  const { namespace, name } = call.info
  const applies = call.contentType === 'application/apply-patch+yaml'
  if (applies && state.store.get(of, of.namespaced ? namespace : '', name) === undefined) {
    return jsonAnswer(insert(state, of, call, jsonBody(call)), 201)
  }
  const current = existing(state, of, call)
  const shown = call.info.subresource === 'scale' ? scaleOf(current) : current
  const patched = patchedBy(call, shown)
  if (!isJson(patched)) throw badRequest('the patched object is not an object')
  return jsonAnswer(store(state, of, call, current, patched))
}

export function getScale(state: ClusterState, of: Resource, call: Call): Answer {
  return jsonAnswer(scaleOf(existing(state, of, call)))
}

function patchedBy(call: Call, current: Json): unknown {
  const patch = parsedBody(call)
  switch (call.contentType) {
    case 'application/json-patch+json':
      return jsonPatch(current, patch)
    case 'application/merge-patch+json':
      return mergePatch(current, patch)
    case 'application/strategic-merge-patch+json':
    case 'application/apply-patch+yaml':
      return strategicPatch(current, patch)
    default:
      throw new ApiError(415, 'UnsupportedMediaType', `unknown patch type: ${call.contentType}`)
  }
}

/** `wanted` is the whole object, or what the subresource shows of it. */
function store(state: ClusterState, of: Resource, call: Call, current: DemoObject, wanted: Json): Json {
  const hasStatus = of.subresources.some(({ name }) => name === 'status')
  switch (call.info.subresource) {
    case '':
      return replace(state, of, call, current, hasStatus ? withField(wanted, 'status', current['status']) : wanted)
    case 'status':
      return replace(state, of, call, current, {
        ...current,
        metadata: { ...current.metadata, ...versionOf(wanted) },
        status: wanted['status'],
      })
    case 'scale': {
      const spec = { ...objectAt(current, 'spec'), replicas: numberAt(wanted, 'spec.replicas') }
      const metadata = { ...current.metadata, ...versionOf(wanted) }
      return scaleOf(replace(state, of, call, current, { ...current, metadata, spec }))
    }
    default:
      throw new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource')
  }
}

function withField(object: Json, field: string, value: unknown): Json {
  const { [field]: _, ...rest } = object
  return value === undefined ? rest : { ...rest, [field]: value }
}

/** A resourceVersion that the client sent counts for its subresources, too. */
function versionOf(wanted: Json): Json {
  const resourceVersion = valueAt(wanted, 'metadata.resourceVersion')
  return typeof resourceVersion === 'string' && resourceVersion !== '' ? { resourceVersion } : {}
}

/** autoscaling/v1 Scale. */
function scaleOf(object: DemoObject): Json {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const labels = Object.entries(objectAt(object, 'spec.selector.matchLabels'))
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: numberAt(object, 'spec.replicas') },
    status: {
      replicas: numberAt(object, 'status.replicas'),
      selector: labels.map(([key, value]) => `${key}=${String(value)}`).join(','),
    },
  }
}
