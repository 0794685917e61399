// The schemas of spec.members and spec.federation.

import { atMost, checked, defaultsTo, flag, list, object, oneOf, text } from '../../../../kit/api/json/json-schema.ts'
import { MEMBER_NAME_RULES, MEMBERS_RULES, SIZES } from '../cel/cel-rules.ts'
import { MAX_MEMBER_NAME } from './member-names.ts'

export const MEMBERS_SCHEMA = checked(
  atMost(
    SIZES.members,
    list(
      'Other UpstreamClusters that are read as one, used instead of servers: GET, LIST and WATCH of the resources in `federation` are answered from their ' +
        'read caches. The order matters, because a resourceVersion holds a version for each member: append new ones.',
      object(
        'A cluster that is read as a part of this one.',
        {
          name: checked(
            text(
              'Its name in object names and annotations: a DNS label of up to 32 characters, without two hyphens in a row.',
              { maxLength: MAX_MEMBER_NAME },
            ),
            MEMBER_NAME_RULES,
          ),
          cluster: text(
            'Name of the UpstreamCluster, which must have servers, and these resources in its spec.cache. Default: the name of the member.',
            {
              maxLength: SIZES.objectName,
            },
          ),
          trustUsers: defaultsTo(
            false,
            flag(
              'Whether the member trusts the users and groups of this cluster: the same names are the same people. If false, no request reaches it. ' +
                'ServiceAccounts, nodes and other users whose names begin with system: are never trusted.',
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
      'prefixed: objects are in namespace MEMBER--NAMESPACE, and cluster-scoped ones are called MEMBER--NAME. merged: names are unchanged, so two objects ' +
        'may have the same name.',
      ['prefixed', 'merged'],
    ),
  ),
  resources: atMost(
    SIZES.cachedResources,
    list(
      'Resources that can be read. Every member must have them in its spec.cache. Default: none.',
      object(
        'One resource.',
        {
          group: text('API group; the core group is the empty string. Default: the core group.', { maxLength: 253 }),
          version: text('Version of the API that clients use: v1.', { maxLength: 63 }),
          resource: text('Plural name in lower case, without a subresource: pods.', { maxLength: 253 }),
          uniqueNames: defaultsTo(
            false,
            flag(
              'With mode merged: asserts that no two members have an object of the same name, which watches require. The gateway does not verify it.',
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
      'The answer while a member has not been read yet. Refuse: 503. Omit: the objects of the other members, with a Warning. If a member is lost later, its ' +
        'last known objects are served.',
      ['Refuse', 'Omit'],
    ),
  ),
  denied: defaultsTo(
    'Refuse',
    oneOf(
      'The answer if the user may not read in a member. Refuse: 403. Omit: the objects of the other members, with a Warning.',
      ['Refuse', 'Omit'],
    ),
  ),
})
