import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { MAX_ADDRESSES } from './resolution.ts'
import { sliceAddresses } from './slice-addresses.ts'

const HTTPS = [{ name: 'https', port: 6443, protocol: 'TCP' }]

interface Given {
  readonly addressType?: string
  readonly ports?: unknown
  readonly endpoints: unknown
}

function slice(given: Given): JsonObject {
  return { metadata: { name: 'kubernetes' }, addressType: 'IPv4', ports: HTTPS, ...given } as unknown as JsonObject
}

function endpoint(address: string, conditions?: object): object {
  return { addresses: [address], ...(conditions !== undefined && { conditions }) }
}

const READY = { ready: true, serving: true, terminating: false }
const LEAVING = { ready: false, serving: true, terminating: true }
const GONE = { ready: false, serving: false, terminating: true }
const NOTHING = 'none of their addresses is ready and has a port named https'

const TABLE: readonly (readonly [
  title: string,
  slices: readonly Given[],
  addresses: readonly string[],
  message?: string,
])[] = [
  ['none', [], [], NOTHING],
  ['an empty slice', [{ endpoints: [] }], [], NOTHING],
  ['null endpoints', [{ endpoints: null }], [], NOTHING],
  [
    'ready',
    [{ endpoints: [endpoint('10.0.0.2', READY), endpoint('10.0.0.1', READY)] }],
    ['10.0.0.1:6443', '10.0.0.2:6443'],
  ],
  ['without conditions', [{ endpoints: [endpoint('10.0.0.1')] }], ['10.0.0.1:6443']],
  [
    'not ready',
    [{ endpoints: [endpoint('10.0.0.1', { ready: false }), endpoint('10.0.0.2', READY)] }],
    ['10.0.0.2:6443'],
  ],
  ['one leaves', [{ endpoints: [endpoint('10.0.0.1', LEAVING), endpoint('10.0.0.2', READY)] }], ['10.0.0.2:6443']],
  [
    'the last one leaves',
    [{ endpoints: [endpoint('10.0.0.1', LEAVING), endpoint('10.0.0.2', GONE)] }],
    ['10.0.0.1:6443'],
  ],
  [
    'ready and terminating',
    [{ endpoints: [endpoint('10.0.0.1', { ready: true, terminating: true }), endpoint('10.0.0.2', READY)] }],
    ['10.0.0.2:6443'],
  ],
  ['all are gone', [{ endpoints: [endpoint('10.0.0.1', GONE)] }], [], NOTHING],
  [
    'both families, twice the same',
    [
      { endpoints: [endpoint('10.0.0.1')] },
      { endpoints: [endpoint('10.0.0.1'), endpoint('10.0.0.2')] },
      { addressType: 'IPv6', endpoints: [endpoint('FD00::0:1'), endpoint('fd00::1')] },
    ],
    ['10.0.0.1:6443', '10.0.0.2:6443', '[fd00::1]:6443'],
  ],
  [
    'each slice has its port',
    [
      { endpoints: [endpoint('10.0.0.1')] },
      {
        ports: [
          { name: 'metrics', port: 1 },
          { name: 'https', port: 443 },
        ],
        endpoints: [endpoint('10.0.0.1')],
      },
    ],
    ['10.0.0.1:443', '10.0.0.1:6443'],
  ],
  ['another port', [{ ports: [{ name: 'http', port: 8080 }], endpoints: [endpoint('10.0.0.1')] }], [], NOTHING],
  ['no port', [{ ports: [{ name: 'https' }], endpoints: [endpoint('10.0.0.1')] }], [], NOTHING],
  [
    'ports out of range',
    [
      {
        ports: [
          { name: 'https', port: 65_536 },
          { name: 'https', port: '6443' },
        ],
        endpoints: [endpoint('10.0.0.1')],
      },
    ],
    [],
    NOTHING,
  ],
  [
    'UDP',
    [{ ports: [{ name: 'https', port: 6443, protocol: 'UDP' }], endpoints: [endpoint('10.0.0.1')] }],
    [],
    NOTHING,
  ],
  ['names', [{ addressType: 'FQDN', endpoints: [endpoint('evil.example.com')] }], [], NOTHING],
  [
    'a name among addresses',
    [{ endpoints: [endpoint('evil.example.com')] }],
    [],
    `${NOTHING}; refused: evil.example.com (not an IP address)`,
  ],
  [
    'refused beside a good one',
    [{ endpoints: [endpoint('169.254.169.254'), endpoint('10.0.0.1')] }],
    ['10.0.0.1:6443'],
    'refused: 169.254.169.254 (link-local)',
  ],
  [
    'many refused',
    [{ endpoints: ['127.0.0.1', '127.0.0.2', '0.0.0.0', '224.0.0.1', '255.255.255.255'].map((one) => endpoint(one)) }],
    [],
    `${NOTHING}; refused: 127.0.0.1 (loopback), 127.0.0.2 (loopback), 0.0.0.0 (unspecified) and 2 more`,
  ],
  [
    'fields of other types',
    [{ ports: 'https', endpoints: [7, null, { addresses: [7] }, { addresses: '10.0.0.1' }] }],
    [],
    NOTHING,
  ],
]

for (const [title, slices, addresses, message = ''] of TABLE) {
  test(`slices: ${title}`, () => {
    assert.deepEqual(sliceAddresses(slices.map(slice)), { addresses, omitted: 0, message })
  })
}

test('more addresses than are used', () => {
  const endpoints = Array.from({ length: 100 }, (_, i) => endpoint(`10.0.0.${i}`))
  const { addresses, omitted } = sliceAddresses([slice({ endpoints })])
  assert.deepEqual([addresses.length, omitted], [MAX_ADDRESSES, 100 - MAX_ADDRESSES])
})
