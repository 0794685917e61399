// The body of a write as the member gets it, in whatever encoding it came.

import { bodyType, UnreadableBody } from '../../../gateway/core/request/write-envelope.ts'
import { MAX_SMALL_YAML_LENGTH, MAX_YAML_LENGTH } from '../../../kube/core/objects/strict-decode.ts'
import { type BodyShape, type ChangeField, SHAPES } from './written-fields.ts'
import { writtenJson, writtenJsonPatch } from './written-json.ts'
import { writtenProtobuf } from './written-protobuf.ts'
import { writtenYaml } from './written-yaml.ts'

/**
 * @param contentType '' = none
 * @throws {UnreadableBody}
 * @throws {MalformedError}
 * @throws {SyntaxError}
 * @throws {StaleVersion} by `change`
 */
export function writtenBody(
  shape: BodyShape | 'patch',
  contentType: string,
  body: Buffer,
  change: ChangeField,
): Buffer {
  if (shape === 'patch') return writtenPatch(contentType, body, change)
  // Without a body, options are in the query.
  if (body.length === 0) return body
  const places = SHAPES[shape]
  switch (bodyType(contentType)) {
    case 'json':
      return writtenJson(body, places, change)
    case 'protobuf':
      return writtenProtobuf(body, places, change)
    case 'yaml':
      return writtenYaml(body, places, change, shape === 'object' ? MAX_YAML_LENGTH : MAX_SMALL_YAML_LENGTH)
  }
}

const PATCH_TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

function writtenPatch(contentType: string, body: Buffer, change: ChangeField): Buffer {
  // As kube-apiserver compares it: neither trimmed nor in lower case.
  switch (contentType.split(';', 1)[0]) {
    case PATCH_TYPES.json:
      return writtenJsonPatch(body, change)
    case PATCH_TYPES.merge:
    case PATCH_TYPES.strategic:
      return writtenJson(body, SHAPES.object, change)
    case PATCH_TYPES.apply:
      return writtenYaml(body, SHAPES.object, change, MAX_YAML_LENGTH)
    default: {
      const known = Object.values(PATCH_TYPES).join(', ')
      throw new UnreadableBody(
        415,
        `the body of the request was in an unknown format - accepted media types include: ${known}`,
      )
    }
  }
}
