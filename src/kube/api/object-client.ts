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
  /** Whether the state delivered so far is current. `message` says what is wrong, '' if nothing is. */
  onState(current: boolean, message: string): void
  /**
   * Everything up to this resourceVersion has been delivered: called after each list, each event, and each bookmark, which comes without an event.
   * Never called without word from the server.
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
  /** Hands `transform` the bytes of each object, too. Not every client can. Default: parsed objects only. */
  readonly raw?: RawObjects
  /**
   * A watch that was interrupted is resumed however long that lasted, as the server tells by 410 if its history has a gap. Default: after a while
   * the objects are listed again, which tells at once what is current.
   */
  readonly keepsPlace?: boolean
}

/** @param bytes of the object; undefined unless FollowChoice.raw is set */
export type Transform = (object: JsonObject, bytes?: Buffer) => JsonObject

/** Finds the bytes of objects in those of an answer, for followers that keep what a server has sent as it was sent. */
export interface RawObjects {
  /** The objects of a list, in order. @throws if they cannot be found */
  itemsOf(page: Buffer): readonly Buffer[]
  /** The object of one event of a watch. @throws if it cannot be found */
  objectOf(event: Buffer): Buffer
  /** An event that only tells a resourceVersion. */
  onBookmark(event: Buffer): void
}

export interface Following {
  stop(): Promise<void>
}

export interface ObjectClient {
  /** Rejects with NotFound (404) if there is none. */
  get(kind: ResourceKind, at: ObjectName): Promise<JsonObject>
  /** GETs any path with its query, for what is not an object of a kind. Not every client has it. */
  read?(path: string): Promise<JsonObject>
  /** @param namespace '' = all */
  list(kind: ResourceKind, namespace: string, labelSelector?: string): Promise<ObjectList>
  create(kind: ResourceKind, object: JsonObject): Promise<JsonObject>
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
