// How controllers and commands read and write objects, either in the embedded API server of this process or in a Kubernetes cluster. Server errors
// are StatusErrors (status.ts); any other error means no response.

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
  /** Apply only: take over fields from other managers. Default false. */
  readonly force?: boolean
  readonly subresource?: 'status' | 'scale'
}

/** Callbacks of a follower; never called concurrently. */
export interface FollowEvents {
  /**
   * A page of a list in progress, for followers that process very many objects in pieces. `onReplace` with all of them follows; if the list fails,
   * another list starts, whose first page has `first` set. Not every client calls this.
   */
  onPage?(objects: readonly JsonObject[], first: boolean): void
  /** The complete state: at the beginning, and after every gap in the history. */
  onReplace(objects: readonly JsonObject[]): void
  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void
  /** A watch was opened where the last one ended, without a list in between. Not every client calls this. */
  onResumed?(): void
  /**
   * Whether the state delivered so far is current. `message` is the fault, '' = none; `code` is that of a refusal by the server that waiting
   * will not change: 403, 404; 0 or absent = not refused.
   */
  onState(current: boolean, message: string, code?: number): void
  /**
   * Everything up to this resourceVersion has been delivered: called after each list, each event, and each bookmark (which has no event).
   * Called only when the server has sent something.
   */
  onVersion?(resourceVersion: string): void
}

/** Which objects a follower receives. */
export interface FollowChoice {
  /** Like `?labelSelector=`. Default: everything. An object that stops matching is DELETED. */
  readonly labelSelector?: string
  /** Only the object of this name, like `?fieldSelector=metadata.name=`. Default: all. */
  readonly name?: string
  /** Called for each object as it arrives, before the next is read; the follower receives the result. For followers that keep little of large objects. */
  readonly transform?: Transform
  /** Parses answers instead of the client, which then does not call `transform`. Not every client supports this. Default: the client parses them. */
  readonly raw?: RawObjects
  /**
   * An interrupted watch is resumed after any time: the server answers 410 if its history has a gap. Default: after a while the objects are listed
   * again, which shows the current state at once.
   */
  readonly keepsPlace?: boolean
  /**
   * resourceVersion of a list that the caller has read: the first watch begins there, without a list of its own. Not every client supports this: one that
   * does not lists first.
   */
  readonly from?: string
}

export type Transform = (object: JsonObject) => JsonObject

/** Encoding of objects requested from an API server. Custom resources have no Protobuf. */
export type WireEncoding = 'json' | 'protobuf'

/** Parses answers for followers that keep the bytes as sent by the server. They account for their memory themselves. */
export interface RawObjects {
  readonly encoding: WireEncoding
  /** @param body of a page of a list @throws if it is not one */
  page(body: Buffer): RawPage
  /** @param bytes of one event of a watch @throws if it is not one */
  event(bytes: Buffer): RawEvent
}

export interface RawPage {
  /** The objects as kept by the follower, in order. */
  readonly objects: readonly JsonObject[]
  readonly resourceVersion: string
  /** '' = the last page. */
  readonly next: string
}

export interface RawEvent {
  readonly type: string
  readonly resourceVersion: string
  /** The object as kept by the follower; for an ERROR, its Status. */
  readonly object: JsonObject
}

export interface Following {
  stop(): Promise<void>
}

export interface ObjectClient {
  /** Rejects with NotFound (404) if there is none. */
  get(kind: ResourceKind, at: ObjectName): Promise<JsonObject>
  /** GETs any path with its query, for responses that are not an object of a kind. Not every client has this. */
  read?(path: string): Promise<JsonObject>
  /** @param namespace '' = all */
  list(kind: ResourceKind, namespace: string, labelSelector?: string): Promise<ObjectList>
  create(kind: ResourceKind, object: JsonObject): Promise<JsonObject>
  /** POSTs to a subresource. Not every client has it. */
  post?(kind: ResourceKind, at: ObjectName, subresource: string, body: JsonObject): Promise<JsonObject>
  /** PUT; fails with a conflict (409) if metadata.resourceVersion is not the current one. */
  update(kind: ResourceKind, object: JsonObject, subresource?: 'status'): Promise<JsonObject>
  patch(kind: ResourceKind, at: ObjectName, type: PatchType, body: unknown, options: PatchOptions): Promise<JsonObject>
  delete(kind: ResourceKind, at: ObjectName): Promise<void>
  /** Lists and watches indefinitely: resumes, relists after 410, and survives a server that is down for hours. */
  follow(kind: ResourceKind, namespace: string, events: FollowEvents, choice?: FollowChoice): Following
  /** The newest resourceVersion over all objects of a kind: nothing committed before the call is newer. */
  currentVersion?(kind: ResourceKind): Promise<string>
}

/** A client with a single user. */
export interface ClosableClient extends ObjectClient {
  /** Closes all connections; stop followers first. */
  close(): Promise<void>
}
