// What Portcullis knows of a kind of object: one row of the scheme (scheme.ts) for each.

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../kit/api/json/json-schema.ts'
import type { PemChecks } from '../../kit/api/validation/pem-checks.ts'

/** additionalPrinterColumns of a CRD (apiextensions.k8s.io/v1 CustomResourceColumnDefinition). */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly description?: string
  /** Above 0: only with `-o wide`. Default 0. */
  readonly priority?: number
  readonly jsonPath: string
  /** What the cell is made of, where no JSONPath can say it: of a column of type `date` the time, else what is shown. */
  readonly cell?: (object: JsonObject) => unknown
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
  /** Beside `/status`. Default: none. */
  readonly subresources?: readonly KindSubresource[]
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
   * The rules that no schema can express, of an object that fits the schema: every error and warning at once. Never throws.
   * @param before the object that is replaced; undefined for a new one
   */
  check(object: JsonObject, before: JsonObject | undefined, pem: PemChecks): readonly FieldError[]
  /** Fills in what the server decides of a new object (PrepareForCreate of registry/rest). Default: nothing. */
  prepare?(object: JsonObject): JsonObject
  /**
   * Seconds that an object which is deleted has to end, before somebody deletes it with none (CheckGracefulDelete of registry/rest).
   * Default: 0, it goes at once.
   * @param asked by the DeleteOptions; undefined = the object's own
   */
  gracePeriod?(object: JsonObject, asked: number | undefined): number
  /** What only one object of the kind may have; malformed parts claim nothing. */
  claims?(object: JsonObject): readonly string[]
  /** Errors that only two objects together make; `others` are those, beside this one, that have a claim of its own. */
  conflicts?(object: JsonObject, others: readonly JsonObject[]): readonly FieldError[]
}

export type KindSubresource = ViewSubresource | ConnectSubresource

interface SubresourceNames {
  /** The last part of the path. */
  readonly name: string
  /** Of what is sent and answered, as discovery tells clients. */
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** The object in another shape, which is read, replaced and patched: `scale`. */
export interface ViewSubresource extends SubresourceNames {
  show(object: JsonObject): JsonObject
  /** The object with what was written; the checks of its kind follow. */
  withView(object: JsonObject, view: JsonObject): JsonObject
}

/** What is done to the object, or answered of it: `eviction`, `log`. */
export interface ConnectSubresource extends SubresourceNames {
  readonly methods: readonly ('GET' | 'POST')[]
  /** @throws {StatusError} */
  connect(call: ConnectCall): ConnectAnswer
}

export interface ConnectCall {
  readonly object: JsonObject
  readonly query: URLSearchParams
  /** The object that was sent; empty when there is none. */
  readonly body: JsonObject
  /** Deletes the object. @param options DeleteOptions as clients send them @throws {StatusError} */
  remove(options: JsonObject): void
}

export interface ConnectAnswer {
  readonly code: number
  /** Text is sent as it is. */
  readonly body: JsonObject | string
  /** What comes after the body, until the client goes. @returns ends it. Default: nothing comes. */
  follow?(write: (text: string) => void): () => void
}

/** `upstreamclusters.proxy.kubegateway.io`, `secrets`: how messages, the store and access rules name a resource. */
export function resourceName({ group, plural }: Pick<ResourceKind, 'group' | 'plural'>): string {
  return group === '' ? plural : `${plural}.${group}`
}

/** `proxy.kubegateway.io/v1alpha1`, `v1`. */
export function apiVersionOf({ group, version }: Pick<ResourceKind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`
}
