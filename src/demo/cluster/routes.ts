// DEMO ONLY. One request of an apiserver of the demo: which handler answers it.

import { isTrue, queryValue } from '../../core/request/list-options.ts'
import { ApiError, badRequest } from './api-error.ts'
import { authorize } from './authorize.ts'
import { type Answer, type Call, type ClusterState, queryOf, textAnswer } from './call.ts'
import { getScale, patchObject, updateObject } from './changes.ts'
import { deleteCollection, deleteObject, evictPod } from './deletion.ts'
import { describeServer } from './discovery.ts'
import { createObject, existing, getObject, listObjects } from './objects.ts'
import { findResource, type Resource } from './resources.ts'
import { review } from './reviews.ts'
import { watchObjects } from './watch.ts'

/** Throws an ApiError. */
export function answerCall(state: ClusterState, call: Call): Answer {
  const { info } = call
  authorize(state, call.user, info)
  if (!info.isResourceRequest) return describeServer(call) ?? NOTHING_HERE
  const of = findResource(info.apiGroup, info.apiVersion, info.resource)
  if (of === undefined) return NOTHING_HERE
  if (info.verb === 'create' && of.verbs.length === 1) return review(state, call) ?? NOTHING_HERE
  const { subresource } = info
  if (subresource !== '' && !of.subresources.some(({ name }) => name === subresource)) {
    if (NEEDS_KUBELET.has(subresource)) throw badRequest(`the demo has no kubelet that could serve ${subresource}`)
    return NOTHING_HERE
  }
  return answerObject(state, of, call)
}

const NOTHING_HERE: Answer = textAnswer('404 page not found\n', 404)
const NEEDS_KUBELET: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward', 'proxy', 'ephemeralcontainers'])

function answerObject(state: ClusterState, of: Resource, call: Call): Answer {
  const { subresource } = call.info
  switch (call.info.verb) {
    case 'get':
      if (subresource === 'scale') return getScale(state, of, call)
      return subresource === 'log' ? podLog(state, of, call) : getObject(state, of, call)
    case 'list':
      return listObjects(state, of, call)
    case 'watch':
      return watchObjects(state, of, call)
    case 'create':
      return subresource === 'eviction' ? evictPod(state, call) : createObject(state, of, call)
    case 'update':
      return updateObject(state, of, call)
    case 'patch':
      return patchObject(state, of, call)
    case 'delete':
      return deleteObject(state, of, call)
    case 'deletecollection':
      return deleteCollection(state, of, call)
    default:
      throw new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource')
  }
}

const LOG_LINES = 5
const LOG_INTERVAL_MS = 1000

/** Some lines of nothing in particular; with `follow` one more each second. */
function podLog(state: ClusterState, of: Resource, call: Call): Answer {
  const { name } = existing(state, of, call).metadata
  const line = (atMs: number): string => `${new Date(atMs).toISOString()} ${name} served requests: ok\n`
  const nowMs = Date.now()
  let body = ''
  for (let ago = LOG_LINES; ago > 0; ago--) body += line(nowMs - ago * LOG_INTERVAL_MS)
  if (!isTrue(queryValue(call.query, 'follow')) || queryOf(call, 'previous') === 'true') return textAnswer(body)
  return {
    ...textAnswer(''),
    stream: (sink) => {
      sink.write(body)
      const timer = setInterval(() => sink.write(line(Date.now())), LOG_INTERVAL_MS)
      return () => clearInterval(timer)
    },
  }
}
