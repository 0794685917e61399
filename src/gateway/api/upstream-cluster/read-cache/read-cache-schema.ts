// The schema of spec.cache.

import {
  atMost,
  checked,
  defaultsTo,
  duration,
  list,
  object,
  oneOf,
  text,
} from '../../../../kit/api/json/json-schema.ts'
import { NAMESPACE_RULES, SIZES } from '../cel/cel-rules.ts'

export const READ_CACHE_SCHEMA = atMost(
  SIZES.cachedResources,
  list(
    'Resources whose lists and watches the gateway answers from its own copy, if it can prove that the answer is the one that the ' +
      'cluster would give; all other requests are forwarded. Default: none.',
    object(
      'One resource.',
      {
        group: text('API group; the core group is the empty string. Default: the core group.', { maxLength: 253 }),
        version: text('Version of the API that clients use: v1. Other versions are forwarded.', { maxLength: 63 }),
        resource: text('Plural name in lower case, without a subresource: pods.', { maxLength: 253 }),
        namespaces: atMost(
          SIZES.cachedNamespaces,
          list(
            'Only these namespaces are cached, each with its own watch; requests that span namespaces are forwarded. Empty: all namespaces, with one watch.',
            checked(text('A namespace.', { maxLength: SIZES.namespace }), NAMESPACE_RULES),
          ),
        ),
        maxBytes: defaultsTo(
          '256Mi',
          text(
            'Maximum memory for the objects, in each encoding: a number of bytes, with k, M, G, Ki, Mi or Gi; 4Mi at least. Beyond it, requests are forwarded.',
            {
              maxLength: 20,
            },
          ),
        ),
        encodings: atMost(
          2,
          list(
            'Encodings that are cached; requests for others are forwarded. Each takes up to maxBytes. Protobuf is watched from the first request for ' +
              'it, until there has been none for ten minutes; custom resources do not have it. Default: JSON and Protobuf.',
            oneOf('An encoding.', ['JSON', 'Protobuf']),
          ),
        ),
        maxStaleness: defaultsTo(
          '10s',
          duration('How long requests that accept any age are still answered after the watch is interrupted.'),
        ),
      },
      ['version', 'resource'],
    ),
  ),
)
