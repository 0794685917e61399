// An object with another resourceVersion, in the form in which it is kept.

import { isProtobuf, type ObjectBytes } from './answer-form.ts'
import { atVersion } from './answers.ts'
import { protobufAtVersion } from './protobuf-answers.ts'

/** For watches of a selection that the object leaves: its last state, with the version of the change. */
export function objectAtVersion({ content, facts }: ObjectBytes, resourceVersion: string): ObjectBytes {
  if (isProtobuf(facts)) return protobufAtVersion({ content, facts }, resourceVersion)
  const moved = atVersion({ json: content, facts }, resourceVersion)
  return { content: moved.json, facts: moved.facts }
}
