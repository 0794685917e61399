// The definition of a kind: one row of the scheme (scheme.ts).

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../kit/api/json/json-schema.ts'
import type { PemChecks } from '../../kit/api/validation/pem-checks.ts'
import type { UserInfo } from './user.ts'

/** additionalPrinterColumns of a CRD (apiextensions.k8s.io/v1 CustomResourceColumnDefinition). */
export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly description?: string
  /** Above 0: only with `-o wide`. Default 0. */
  readonly priority?: number
  readonly jsonPath: string
  /** Computes the cell where JSONPath cannot: for a column of type `date` the time, else the displayed value. */
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
  /** Whether there is a `/status` subresource; if so, the main endpoint ignores status. */
  readonly hasStatus: boolean
  /** Whether the server alone writes the status, as it grants something: of `/status`, clients have reads only. Default: false. */
  readonly ownStatus?: boolean
  /** Whether metadata.generation counts changes outside metadata (and status). Core kinds such as Secret have none. */
  readonly hasGeneration: boolean
  /** Subresources other than `/status`. Default: none. */
  readonly subresources?: readonly KindSubresource[]
  /** Schema of the whole object; `metadata` is just `{ type: 'object' }`. */
  readonly schema: JsonSchema
  readonly columns: readonly PrinterColumn[]
  /** Fields allowed in a fieldSelector besides metadata.name and metadata.namespace. */
  readonly selectableFields: readonly string[]
  /** Paths of fields that hold keys and tokens inline: hidden from the view role, and encrypted by the store. Default: none. */
  readonly inlineSecrets?: readonly (readonly string[])[]
  /** Paths of certificate fields, in which a private key may have been left in error. Default: none. */
  readonly certificateFields?: readonly (readonly string[])[]
  /**
   * Rules that no schema can express, for an object that fits the schema: returns every error and warning. Never throws.
   * @param before the object being replaced; undefined for a new one
   */
  check(object: JsonObject, before: JsonObject | undefined, pem: PemChecks): readonly FieldError[]
  /**
   * Fills in what the server decides for a new object (PrepareForCreate of registry/rest). Default: nothing.
   * @param by undefined = the server itself creates it
   * @throws {StatusError} if this sender may not create one
   */
  prepare?(object: JsonObject, by: ObjectWriter | undefined): JsonObject
  /**
   * Grace period in seconds before the object is removed, unless it is deleted again with none (CheckGracefulDelete of registry/rest). Default: 0,
   * immediate removal.
   * @param asked by the DeleteOptions; undefined = the object's own
   */
  gracePeriod?(object: JsonObject, asked: number | undefined): number
  /** Claims that are unique within the kind; malformed parts claim nothing. */
  claims?(object: JsonObject): readonly string[]
  /** Errors that involve two objects; `others` share a claim with this one. */
  conflicts?(object: JsonObject, others: readonly JsonObject[]): readonly FieldError[]
}

/** The sender of a request for an object, as far as kinds that record it must know. */
export interface ObjectWriter {
  /** The user of its credential, whatever the request impersonates. */
  readonly user: UserInfo
  /** The request asks to run as another user (kubectl --as). */
  readonly impersonates: boolean
  /** Whether the user has a right on the object's kind. @param subresource '' = on the object */
  may(verb: string, subresource: string): boolean
}

export type KindSubresource = ViewSubresource | ConnectSubresource

interface SubresourceNames {
  /** The last part of the path. */
  readonly name: string
  /** Group of the request and response bodies, as discovery reports it. */
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** Another representation of the object that can be read, replaced and patched: `scale`. */
export interface ViewSubresource extends SubresourceNames {
  show(object: JsonObject): JsonObject
  /** The object with the written view applied; the checks of its kind follow. */
  withView(object: JsonObject, view: JsonObject): JsonObject
}

/** An action on the object, or data derived from it: `eviction`, `log`. */
export interface ConnectSubresource extends SubresourceNames {
  readonly methods: readonly ('GET' | 'POST')[]
  /** @throws {StatusError} */
  connect(call: ConnectCall): ConnectAnswer
}

export interface ConnectCall {
  readonly object: JsonObject
  readonly query: URLSearchParams
  /** The request body; empty if there is none. */
  readonly body: JsonObject
  /** undefined = without a credential. */
  readonly by: ObjectWriter | undefined
  /** Wall clock of the server, milliseconds since the epoch. */
  readonly nowMs: number
  /** Writes the object's status, also where clients cannot. @returns the object after the write @throws {StatusError} */
  setStatus(status: JsonObject): JsonObject
  /** Deletes the object. @param options DeleteOptions as clients send them @throws {StatusError} */
  remove(options: JsonObject): void
}

export interface ConnectAnswer {
  readonly code: number
  /** Text is sent verbatim. */
  readonly body: JsonObject | string
  /** Streams more output after the body until the client disconnects. @returns stops it. Default: nothing follows. */
  follow?(write: (text: string) => void): () => void
}

/** `upstreamclusters.proxy.kubegateway.io`, `secrets`: the name used in messages, the store and access rules. */
export function resourceName({ group, plural }: Pick<ResourceKind, 'group' | 'plural'>): string {
  return group === '' ? plural : `${plural}.${group}`
}

/** `proxy.kubegateway.io/v1alpha1`, `v1`. */
export function apiVersionOf({ group, version }: Pick<ResourceKind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`
}
