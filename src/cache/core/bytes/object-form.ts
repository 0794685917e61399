// The ways in which kube-apiserver writes objects.

/**
 * declared: keys in the order of the fields of Go's types, kind and apiVersion first: Kubernetes' own kinds, and all metadata on its own.
 * sorted: keys in byte order: custom resources, of which kube-apiserver has no types.
 */
export type JsonForm = 'declared' | 'sorted'

/** Custom resources have no Protobuf. */
export type ObjectForm = JsonForm | 'protobuf'

/** Which kind an object or a list is. */
export interface TypeMeta {
  readonly kind: string
  readonly apiVersion: string
}
