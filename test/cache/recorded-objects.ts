// The objects of recorded answers, one by one, as JSON.parse finds them.

import { ListSplitter } from '../../src/cache/core/bytes/split-list.ts'
import type { Resource } from '../../src/cache/core/fields/selectable-fields.ts'
import { bodyOf, type RecordedAnswer } from './read-answers.ts'

const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  'nodes',
  'namespaces',
  'resourceslices',
  'clusterrolebindings',
  'certificatesigningrequests',
  'customresourcedefinitions',
  'apiservices',
  'persistentvolumes',
])

export function isJson({ text }: RecordedAnswer): boolean {
  return text !== undefined
}

export function isPartial({ accept }: RecordedAnswer): boolean {
  return accept.includes('PartialObjectMetadata')
}

/** `/api/v1/namespaces/a/pods?limit=1` */
export function resourceOf(path: string): Resource {
  const parts = new URL(path, 'https://localhost').pathname.split('/').slice(1)
  const [group = '', version = ''] = parts[0] === 'api' ? ['', parts[1]] : parts.slice(1)
  const resource = parts.at(-1) ?? ''
  return { group, version, resource, namespaced: !CLUSTER_SCOPED.has(resource) }
}

/** With kind and apiVersion, as a watch has them. */
export function objectsOf(list: RecordedAnswer): Buffer[] {
  const objects: Buffer[] = []
  const splitter = new ListSplitter({ objectBytes: 1e7, objects: 1e6 }, (object) => objects.push(Buffer.from(object)))
  splitter.feed(bodyOf(list))
  splitter.end()
  return objects
}
