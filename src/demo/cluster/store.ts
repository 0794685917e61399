// DEMO ONLY. What the apiservers of one demo cluster share in place of etcd: objects in memory, one rising
// resourceVersion over all of them, and the recent changes for watches that resume.

import type { DemoObject } from './json.ts'
import type { Resource } from './resources.ts'

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: DemoObject
  /** The object before; undefined for ADDED. */
  readonly previous: DemoObject | undefined
  readonly version: number
}

/** Changes that are kept of each resource; a watch that resumes before them is told 410. */
const KEPT_CHANGES = 1000

interface Shelf {
  readonly objects: Map<string, DemoObject>
  readonly listeners: Set<(change: Change) => void>
  changes: Change[]
  /** Version of the newest change that was dropped. */
  forgotten: number
}

export class Store {
  // Not 0, which asks for "any version" in requests.
  #version = 1
  readonly #shelves = new Map<string, Shelf>()

  /** The newest resourceVersion. */
  get version(): number {
    return this.#version
  }

  get(of: Resource, namespace: string, name: string): DemoObject | undefined {
    return this.#shelf(of).objects.get(`${namespace}/${name}`)
  }

  /** By namespace and name; '' is all namespaces. */
  list(of: Resource, namespace = ''): DemoObject[] {
    const found: DemoObject[] = []
    for (const [key, object] of this.#shelf(of).objects) {
      if (namespace === '' || key.startsWith(`${namespace}/`)) found.push(object)
    }
    return found.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  }

  /** Creates or replaces; returns it with its new resourceVersion. */
  put(of: Resource, object: DemoObject): DemoObject {
    const shelf = this.#shelf(of)
    const previous = shelf.objects.get(keyOf(object))
    const stored = this.#versioned(object)
    shelf.objects.set(keyOf(stored), stored)
    this.#record(shelf, previous === undefined ? 'ADDED' : 'MODIFIED', stored, previous)
    return stored
  }

  delete(of: Resource, object: DemoObject): DemoObject {
    const shelf = this.#shelf(of)
    const previous = shelf.objects.get(keyOf(object))
    if (previous === undefined) return object
    shelf.objects.delete(keyOf(object))
    const last = this.#versioned(previous)
    this.#record(shelf, 'DELETED', last, previous)
    return last
  }

  /** Changes after `version`; undefined when some of them have been forgotten. */
  since(of: Resource, version: number): readonly Change[] | undefined {
    const shelf = this.#shelf(of)
    if (version < shelf.forgotten) return undefined
    return shelf.changes.filter((change) => change.version > version)
  }

  /** Returns the function that ends it. */
  watch(of: Resource, listener: (change: Change) => void): () => void {
    const { listeners } = this.#shelf(of)
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  #shelf({ group, resource }: Resource): Shelf {
    const key = `${group}/${resource}`
    let shelf = this.#shelves.get(key)
    if (shelf === undefined) {
      shelf = { objects: new Map(), listeners: new Set(), changes: [], forgotten: 0 }
      this.#shelves.set(key, shelf)
    }
    return shelf
  }

  #versioned(object: DemoObject): DemoObject {
    this.#version++
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } }
  }

  #record(shelf: Shelf, type: Change['type'], object: DemoObject, previous: DemoObject | undefined): void {
    const change: Change = { type, object, previous, version: this.#version }
    shelf.changes.push(change)
    if (shelf.changes.length > 2 * KEPT_CHANGES) {
      shelf.forgotten = shelf.changes[KEPT_CHANGES - 1]?.version ?? 0
      shelf.changes = shelf.changes.slice(KEPT_CHANGES)
    }
    for (const listener of shelf.listeners) listener(change)
  }
}

function keyOf({ metadata }: DemoObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}
