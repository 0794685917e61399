// The schemas of spec.members and spec.federation.

import { atMost, checked, defaultsTo, flag, list, object, oneOf, text } from '../../../../kit/api/json/json-schema.ts'
import { MEMBER_NAME_RULES, MEMBERS_RULES, SIZES } from '../cel/cel-rules.ts'
import { MAX_MEMBER_NAME } from './member-names.ts'

export const MEMBERS_SCHEMA = checked(
  atMost(
    SIZES.members,
    list(
      'Other UpstreamClusters that are read as one: GET, LIST and WATCH of the resources in `federation` are answered from their read caches. In place of ' +
        'servers. The order counts: resourceVersions hold a version for each. Append new ones.',
      object(
        'A cluster that is read as a part of this one.',
        {
          name: checked(
            text(
              'What it is called in names and annotations: a DNS label of up to 32 characters, without two hyphens in a row.',
              { maxLength: MAX_MEMBER_NAME },
            ),
            MEMBER_NAME_RULES,
          ),
          cluster: text(
            'The UpstreamCluster. It needs servers, and spec.cache of these resources. Default: its name.',
            {
              maxLength: SIZES.objectName,
            },
          ),
          trustUsers: defaultsTo(
            false,
            flag(
              'Whether users and groups of this cluster are the same people there. Without, no request reaches it. Service accounts, nodes and other names ' +
                'with system: never count there.',
            ),
          ),
        },
        ['name'],
      ),
    ),
  ),
  MEMBERS_RULES,
)

export const FEDERATION_SCHEMA = object('How the members of spec.members are read.', {
  mode: defaultsTo(
    'prefixed',
    oneOf(
      'prefixed: objects are in namespace MEMBER--NAMESPACE, and those in none are called MEMBER--NAME. merged: names stay as they are, and two objects may ' +
        'have one name.',
      ['prefixed', 'merged'],
    ),
  ),
  resources: atMost(
    SIZES.cachedResources,
    list(
      'Resources that are answered. Every member has them in its spec.cache. Default: none.',
      object(
        'One resource.',
        {
          group: text('API group; the core group is the empty string. Default: the core group.', { maxLength: 253 }),
          version: text('Version of the API that clients use: v1.', { maxLength: 63 }),
          resource: text('Plural name in lower case, without a subresource: pods.', { maxLength: 253 }),
          uniqueNames: defaultsTo(
            false,
            flag(
              'With mode merged: no two members have an object of one name, so that it may be watched. This is taken at its word.',
            ),
          ),
        },
        ['version', 'resource'],
      ),
    ),
  ),
  partial: defaultsTo(
    'Refuse',
    oneOf(
      'What is answered while a member has not been read yet. Refuse: 503. Omit: the objects of the others, with a Warning. Members that are lost later ' +
        'are answered as they were last known.',
      ['Refuse', 'Omit'],
    ),
  ),
  denied: defaultsTo(
    'Refuse',
    oneOf(
      'What is answered if the user may not read in a member. Refuse: 403. Omit: the objects of the others, with a Warning.',
      ['Refuse', 'Omit'],
    ),
  ),
})
