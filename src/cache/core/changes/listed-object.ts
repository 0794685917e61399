// An object of a list that is read for nothing but a proof, as far as it is compared with what is kept.

import { recordOf, textOf } from '../../../kit/api/json/object-shape.ts'

export interface ListedObject {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

export function listedObject(item: unknown): ListedObject {
  const { namespace, name, uid, resourceVersion } = recordOf(recordOf(item)['metadata'])
  return {
    namespace: textOf(namespace),
    name: textOf(name),
    uid: textOf(uid),
    resourceVersion: textOf(resourceVersion),
  }
}
