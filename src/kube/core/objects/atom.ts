// How values merge, by their schema: what a place may hold, and whether its parts are owned separately (k8s.io/kube-openapi/pkg/schemaconv,
// sigs.k8s.io/structured-merge-diff/v6/schema).

import type { JsonSchema } from '../../../kit/api/json/json-schema.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { ownProperty, type SchemaView, viewOf } from '../../../kit/api/json/schema-view.ts'

/** What a place may hold. More than one only if the schema does not say. */
export interface Atom {
  readonly scalar?: 'string' | 'numeric' | 'boolean' | 'untyped'
  readonly list?: ListAtom
  readonly map?: MapAtom
}

export interface ListAtom {
  /** An atomic list has one owner; items of any other list are owned separately. */
  readonly atomic: boolean
  /** Empty = a set. */
  readonly keys: readonly string[]
  readonly items: Atom
  /** Default of a key that an item omits. */
  keyDefault(name: string): unknown
}

export interface MapAtom {
  readonly atomic: boolean
  /** Atom of a field named in the schema; undefined for others. */
  field(name: string): Atom | undefined
  /** Atom of members not named in the schema; undefined = they are not allowed. */
  readonly others: Atom | undefined
}

/** Any value; lists and maps are one value each. */
const UNTYPED: Atom = {
  scalar: 'untyped',
  list: atomicList(() => UNTYPED),
  map: {
    atomic: true,
    field: () => undefined,
    get others(): Atom {
      return UNTYPED
    },
  },
}

/** Any value of an object without schema: map members are owned separately, lists are one value. */
const DEDUCED: Atom = {
  scalar: 'untyped',
  list: atomicList(() => UNTYPED),
  map: {
    atomic: false,
    field: () => undefined,
    get others(): Atom {
      return DEDUCED
    },
  },
}

function atomicList(items: () => Atom): ListAtom {
  return {
    atomic: true,
    keys: [],
    get items(): Atom {
      return items()
    },
    keyDefault: () => undefined,
  }
}

const TEXT: SchemaView = { type: 'string' }
const TEXTS: SchemaView = { type: 'object', additionalProperties: TEXT }

/** metadata of every object (k8s.io/apimachinery/pkg/apis/meta/v1/types.go). */
const METADATA: SchemaView = {
  type: 'object',
  properties: {
    name: TEXT,
    generateName: TEXT,
    namespace: TEXT,
    selfLink: TEXT,
    uid: TEXT,
    resourceVersion: TEXT,
    generation: { type: 'integer' },
    creationTimestamp: TEXT,
    deletionTimestamp: TEXT,
    deletionGracePeriodSeconds: { type: 'integer' },
    labels: TEXTS,
    annotations: TEXTS,
    finalizers: { type: 'array', items: TEXT, 'x-kubernetes-list-type': 'set' },
    ownerReferences: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      items: {
        type: 'object',
        'x-kubernetes-map-type': 'atomic',
        properties: {
          apiVersion: TEXT,
          kind: TEXT,
          name: TEXT,
          uid: TEXT,
          controller: { type: 'boolean' },
          blockOwnerDeletion: { type: 'boolean' },
        },
      },
    },
    managedFields: { type: 'array', items: { type: 'object' } },
  },
}

const OBJECT_ATOMS = new WeakMap<JsonSchema, Atom>()

/** Atom of a kind's objects. */
export function objectAtom(schema: JsonSchema): Atom {
  let atom = OBJECT_ATOMS.get(schema)
  if (atom === undefined) {
    const view = viewOf(schema)
    const properties = { ...view.properties, apiVersion: TEXT, kind: TEXT, metadata: METADATA }
    atom = atomOf({ ...view, properties }, false)
    OBJECT_ATOMS.set(schema, atom)
  }
  return atom
}

/** @param inherited whether an ancestor keeps unknown fields: then they may occur anywhere below it */
function atomOf(schema: SchemaView, inherited: boolean): Atom {
  const open = inherited || schema['x-kubernetes-preserve-unknown-fields'] === true
  switch (schema['x-kubernetes-int-or-string'] === true ? undefined : schema.type) {
    case 'string':
      return { scalar: schema.format === undefined || schema.format === 'byte' ? 'string' : 'untyped' }
    case 'integer':
    case 'number':
      return { scalar: 'numeric' }
    case 'boolean':
      return { scalar: 'boolean' }
    case 'array':
      return { list: listAtom(schema, open) }
    case 'object':
      return { map: mapAtom(schema, open) }
    default:
      return { scalar: 'untyped', list: listAtom(schema, open), map: mapAtom(schema, open) }
  }
}

function listAtom(schema: SchemaView, open: boolean): ListAtom {
  const { items } = schema
  const type = schema['x-kubernetes-list-type'] ?? 'atomic'
  return {
    atomic: type !== 'map' && type !== 'set',
    keys: type === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : [],
    items: items === undefined ? UNTYPED : atomOf(items, open),
    keyDefault: (name) => ownProperty(items, name)?.default,
  }
}

function mapAtom(schema: SchemaView, open: boolean): MapAtom {
  const { additionalProperties: additional, properties = {} } = schema
  const fields = new Map(Object.entries(properties).map(([name, known]) => [name, atomOf(known, open)]))
  const others = (): Atom | undefined => {
    if (additional === undefined) return open || fields.size === 0 ? DEDUCED : undefined
    return typeof additional === 'boolean' ? (additional ? DEDUCED : undefined) : atomOf(additional, open)
  }
  return {
    atomic: schema['x-kubernetes-map-type'] === 'atomic',
    field: (name) => fields.get(name),
    others: others(),
  }
}

export function memberAtom(map: MapAtom, name: string): Atom | undefined {
  return map.field(name) ?? map.others
}

/** The part of the atom that fits the value; the whole atom if none does. */
export function deduced(atom: Atom, value: unknown): Atom {
  if (Array.isArray(value)) return atom.list === undefined ? atom : { list: atom.list }
  if (isRecord(value)) return atom.map === undefined ? atom : { map: atom.map }
  if (value === undefined || value === null) return atom
  return atom.scalar === undefined ? atom : { scalar: atom.scalar }
}

export function sameAtom(a: Atom, b: Atom): boolean {
  return a.scalar === b.scalar && a.list === b.list && a.map === b.map
}

/** How an ambiguous atom is treated: as a map before a scalar before a list. */
export function kindOfAtom(atom: Atom): 'map' | 'scalar' | 'list' {
  if (atom.map !== undefined) return 'map'
  return atom.scalar !== undefined ? 'scalar' : 'list'
}
