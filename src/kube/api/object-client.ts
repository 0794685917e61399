// How controllers and commands read and write objects, wherever these live: in the embedded API server of the same process,
// or in a Kubernetes cluster. Errors of the server are StatusErrors (status.ts); any other error means no answer.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { ResourceKind } from './resource-kind.ts'

/** metadata.namespace is '' for cluster-scoped kinds. */
export interface ObjectName {
  readonly namespace: string
  readonly name: string
}

export interface ObjectList {
  readonly items: readonly JsonObject[]
  readonly resourceVersion: string
}

export type PatchType = 'application/merge-patch+json' | 'application/json-patch+json' | 'application/apply-patch+yaml'

export interface PatchOptions {
  readonly fieldManager: string
  /** Only with apply: take fields over from other managers. Default false. */
  readonly force?: boolean
  readonly subresource?: 'status' | 'scale'
}

/** What a follower hears; never two calls at once. */
export interface FollowEvents {
  /**
   * A page of a list that is being read, for whoever prepares in pieces for very many objects. `onReplace` with all of them
   * follows; or, when the list fails, another list whose first page says so. Not every client tells.
   */
  onPage?(objects: readonly JsonObject[], first: boolean): void
  /** The whole truth: at the beginning, and whenever the history had a gap. */
  onReplace(objects: readonly JsonObject[]): void
  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void
  /** Whether what was heard so far is the current state. `message` says what is wrong, '' when nothing is. */
  onState(current: boolean, message: string): void
  /**
   * Everything up to this resourceVersion has been told: after each list, each event, and each bookmark, which comes without
   * an event. Never without something that the server said.
   */
  onVersion?(resourceVersion: string): void
}

/** What a follower wants to hear of. */
export interface FollowChoice {
  /** As `?labelSelector=`. Default: everything. An object that no longer matches is DELETED. */
  readonly labelSelector?: string
  /** Only the object of this name, as `?fieldSelector=metadata.name=`. Default: all. */
  readonly name?: string
  /**
   * Called for each object as it comes, before others are read; the follower is told what it returns. For whoever keeps
   * little of large objects.
   */
  readonly transform?: (object: JsonObject) => JsonObject
}

export interface Following {
  stop(): Promise<void>
}

export interface ObjectClient {
  /** Rejects with NotFound (404) when there is none. */
  get(kind: ResourceKind, at: ObjectName): Promise<JsonObject>
  /** A GET of any path with its query, for what is not a object of a kind. Not every client has it. */
  read?(path: string): Promise<JsonObject>
  /** @param namespace '' = all */
  list(kind: ResourceKind, namespace: string, labelSelector?: string): Promise<ObjectList>
  create(kind: ResourceKind, object: JsonObject): Promise<JsonObject>
  /** PUT; conflicts (409) when metadata.resourceVersion is not the current one. */
  update(kind: ResourceKind, object: JsonObject, subresource?: 'status'): Promise<JsonObject>
  patch(kind: ResourceKind, at: ObjectName, type: PatchType, body: unknown, options: PatchOptions): Promise<JsonObject>
  delete(kind: ResourceKind, at: ObjectName): Promise<void>
  /** List and watch without end: resumes, relists after 410, and survives a server that is away for hours. */
  follow(kind: ResourceKind, namespace: string, events: FollowEvents, choice?: FollowChoice): Following
  /** The newest resourceVersion of all objects of a kind: whatever was committed before the call is not newer. */
  currentVersion?(kind: ResourceKind): Promise<string>
}

/** A client that has one user. */
export interface ClosableClient extends ObjectClient {
  /** Closes all connections; stop followers first. */
  close(): Promise<void>
}
