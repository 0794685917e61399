// The schema of spec.cache.

import { atMost, checked, defaultsTo, duration, list, object, text } from '../../../kit/api/json/json-schema.ts'
import { NAMESPACE_RULES, SIZES } from './cel.ts'

export const READ_CACHE_SCHEMA = atMost(
  SIZES.cachedResources,
  list(
    'Resources whose lists and watches the gateway answers itself, from a copy that it follows, wherever it can prove that the answer is ' +
      'what the cluster would say; all others are forwarded. Default: none.',
    object(
      'One resource.',
      {
        group: text('API group; the core group is the empty string. Default: the core group.', { maxLength: 253 }),
        version: text('Version of the API that clients use: v1. Other versions are forwarded.', { maxLength: 63 }),
        resource: text('Plural name in lower case, without a subresource: pods.', { maxLength: 253 }),
        namespaces: atMost(
          SIZES.cachedNamespaces,
          list(
            'Only these namespaces are kept, each by a watch of its own; what goes beyond one of them is forwarded. Empty: all of them, by one watch.',
            checked(text('A namespace.', { maxLength: SIZES.namespace }), NAMESPACE_RULES),
          ),
        ),
        maxBytes: defaultsTo(
          '256Mi',
          text(
            'What the objects may take in memory, as JSON: a number of bytes, with k, M, G, Ki, Mi or Gi. Beyond it the resource is forwarded.',
            {
              maxLength: 20,
            },
          ),
        ),
        maxStaleness: defaultsTo(
          '10s',
          duration(
            'How long requests that take any age are still answered when the cluster no longer can be followed.',
          ),
        ),
      },
      ['version', 'resource'],
    ),
  ),
)
