// What Portcullis knows of a kind of object: one row of the scheme (scheme.ts) for each.

import type { FieldError } from '../kube/field-error.ts'
import type { JsonObject } from '../kube/json-object.ts'
import type { JsonSchema } from '../kube/json-schema.ts'
import type { PemChecks } from '../validation/pem-checks.ts'

/** additionalPrinterColumns of a CRD (apiextensions.k8s.io/v1 CustomResourceColumnDefinition). */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly description?: string
  /** Above 0: only with `-o wide`. Default 0. */
  readonly priority?: number
  readonly jsonPath: string
}

export interface ResourceKind {
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly listKind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  /** Whether there is a `/status` subresource; then the main endpoint ignores status. */
  readonly hasStatus: boolean
  /** Whether metadata.generation counts changes of what is not metadata (nor status). Core kinds such as Secret have none. */
  readonly hasGeneration: boolean
  /** Of the whole object; `metadata` is just `{ type: 'object' }`. */
  readonly schema: JsonSchema
  readonly columns: readonly PrinterColumn[]
  /** What may stand in a fieldSelector beside metadata.name and metadata.namespace. */
  readonly selectableFields: readonly string[]
  /** Paths of fields that hold keys and tokens themselves: role view does not see them, and the store encrypts them. Default: none. */
  readonly inlineSecrets?: readonly (readonly string[])[]
  /** Paths of fields that hold certificates, beside which somebody may have left a private key. Default: none. */
  readonly certificateFields?: readonly (readonly string[])[]
  /**
   * The rules that no schema can express, of an object that fits the schema: every error and doubt at once. Never throws.
   * @param before the object that is replaced; undefined for a new one
   */
  check(object: JsonObject, before: JsonObject | undefined, pem: PemChecks): readonly FieldError[]
  /** What only one object of the kind may have; malformed parts claim nothing. */
  claims?(object: JsonObject): readonly string[]
  /** Errors that only two objects together make; `others` are those, beside this one, that have a claim of its own. */
  conflicts?(object: JsonObject, others: readonly JsonObject[]): readonly FieldError[]
}

/** `upstreamclusters.proxy.kubegateway.io`, `secrets`: how messages, the store and access rules name a resource. */
export function resourceName({ group, plural }: Pick<ResourceKind, 'group' | 'plural'>): string {
  return group === '' ? plural : `${plural}.${group}`
}

/** `proxy.kubegateway.io/v1alpha1`, `v1`. */
export function apiVersionOf({ group, version }: Pick<ResourceKind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`
}
