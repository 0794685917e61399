// Where the body of a write has what is called otherwise in the member: names, versions, and the annotation that is only shown. Everything else of a body
// goes to the member as it came.

import { UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'

export type WrittenField = 'name' | 'generateName' | 'namespace' | 'resourceVersion'

/** How the member says a field of the body. @throws {UnreadableBody} @throws {StaleVersion} */
export type ChangeField = (field: WrittenField, shown: string) => string

/** options: DeleteOptions. */
export type BodyShape = 'object' | 'options' | 'eviction'

/** A field of a map, or of a Protobuf message. */
export interface WrittenPlace {
  readonly number: number
  /** cut: the annotations, of which that of the federated cluster is taken out. */
  readonly is: WrittenField | 'cut' | WrittenMap
}

export type WrittenMap = ReadonlyMap<string, WrittenPlace>

/** ObjectMeta and Preconditions (apimachinery/pkg/apis/meta/v1/generated.proto). */
export const WRITTEN_METADATA: WrittenMap = new Map<string, WrittenPlace>([
  ['name', { number: 1, is: 'name' }],
  ['generateName', { number: 2, is: 'generateName' }],
  ['namespace', { number: 3, is: 'namespace' }],
  ['resourceVersion', { number: 6, is: 'resourceVersion' }],
  ['annotations', { number: 12, is: 'cut' }],
])
const PRECONDITIONS: WrittenMap = new Map([['resourceVersion', { number: 2, is: 'resourceVersion' }]])
const OPTIONS: WrittenMap = new Map([['preconditions', { number: 2, is: PRECONDITIONS }]])

/** Metadata is the first field of every kind; Eviction is that of api/policy/v1/generated.proto. */
export const SHAPES: Readonly<Record<BodyShape, WrittenMap>> = {
  object: new Map([['metadata', { number: 1, is: WRITTEN_METADATA }]]),
  options: OPTIONS,
  eviction: new Map([
    ['metadata', { number: 1, is: WRITTEN_METADATA }],
    ['deleteOptions', { number: 2, is: OPTIONS }],
  ]),
}

/** Texts of a body may have megabytes, and are in answers and logs. */
const MOST_SHOWN = 253

export function inWords(text: string): string {
  return text.length <= MOST_SHOWN ? text : `${text.slice(0, MOST_SHOWN)}...`
}

/** The version that is written says nothing of the member: the client has to read again. */
export class StaleVersion extends Error {}

/** The fields of a map that were there. */
export class SeenFields {
  readonly #seen = new Set<string>()

  /** @throws {UnreadableBody} if it was there before: some readers take the first value, some the last, and Go merges messages and structs */
  see(field: string): void {
    if (this.#seen.has(field)) throw new UnreadableBody(400, `the body has "${field}" twice`)
    this.#seen.add(field)
  }
}
