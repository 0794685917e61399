import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { type ClusterChoice, chooseClusters, listed, meansEverything, readChoice } from './choose-clusters.ts'
import { globMatches } from './glob.ts'

const KNOWN = [
  { name: 'prod-us-1', labels: { region: 'us', env: 'prod' } },
  { name: 'prod-eu-1', labels: { region: 'eu', env: 'prod' } },
  { name: 'prod-eu-2', labels: { region: 'eu', env: 'prod', canary: '' } },
  { name: 'dev', labels: {} },
]

function chosen(choice: Partial<ClusterChoice>, known: Parameters<typeof chooseClusters>[1] = KNOWN): string {
  try {
    const read = readChoice({ names: [], selector: undefined, all: false, except: [], ...choice })
    return chooseClusters(read, known)
      .map(({ name }) => name)
      .join(' ')
  } catch (error) {
    assert.ok(error instanceof UserError)
    return `${error.message}; ${error.fix}`
  }
}

test('names, globs, a selector, all, and what is left out', () => {
  for (const [choice, expected] of [
    [{ names: ['dev', 'prod-us-1'] }, 'dev prod-us-1'],
    [{ names: ['prod-*'] }, 'prod-eu-1 prod-eu-2 prod-us-1'],
    [{ names: ['prod-??-1', 'dev'] }, 'dev prod-eu-1 prod-us-1'],
    [{ names: ['prod-eu-1', 'prod-*'] }, 'prod-eu-1 prod-eu-2 prod-us-1'],
    [{ selector: 'region=eu' }, 'prod-eu-1 prod-eu-2'],
    [{ selector: 'region in (eu,us),!canary' }, 'prod-eu-1 prod-us-1'],
    [{ all: true }, 'dev prod-eu-1 prod-eu-2 prod-us-1'],
    [{ all: true, except: ['prod-eu-*'] }, 'dev prod-us-1'],
  ] as const) {
    assert.equal(chosen(choice), expected, JSON.stringify(choice))
  }
})

test('a cluster with members stands for them, and --except is about what is written and what it stands for', () => {
  const known = [...KNOWN, { name: 'prod-all', labels: { all: '' }, members: ['prod-eu-1', 'dev', 'gone'] }]
  for (const [choice, expected] of [
    [{ names: ['prod-all'] }, 'dev prod-eu-1'],
    [{ names: ['prod-all', 'prod-eu-1'] }, 'dev prod-eu-1'],
    [{ names: ['prod-*'] }, 'dev prod-eu-1 prod-eu-2 prod-us-1'],
    [{ selector: 'all' }, 'dev prod-eu-1'],
    [{ all: true }, 'dev prod-eu-1 prod-eu-2 prod-us-1'],
    [{ names: ['prod-all'], except: ['dev'] }, 'prod-eu-1'],
    [{ names: ['prod-*'], except: ['prod-all'] }, 'prod-eu-1 prod-eu-2 prod-us-1'],
    [{ all: true, except: ['prod-all'] }, 'dev prod-eu-1 prod-eu-2 prod-us-1'],
  ] as const) {
    assert.equal(chosen(choice, known), expected, JSON.stringify(choice))
  }
  assert.match(
    chosen({ names: ['prod-all'], except: ['dev', 'prod-*'] }, known),
    /^--except leaves out all chosen clusters; chosen: prod-all$/,
  )
})

test('what matches nothing, or contradicts itself, is an error that names the place and what there is', () => {
  for (const [choice, expected] of [
    [
      { names: ['prd-eu-1'] },
      /^there is no UpstreamCluster "prd-eu-1"; did you mean prod-eu-1\? known: dev, prod-eu-1/,
    ],
    [{ names: ['dev', 'x', 'y-*'] }, /^there is no UpstreamCluster "x", nor "y-\*"; known: /],
    [{ names: ['prd-*'] }, /^"prd-\*" matches no UpstreamCluster; did you mean 'prod\*'\?/],
    [{ names: ['devv*'] }, /^"devv\*" matches no UpstreamCluster; did you mean dev\?/],
    [{ names: ['dev', 'dev'] }, /^"dev" is named twice; name it once$/],
    [{ names: [''] }, /^a name is empty; is a variable of the shell not set\?$/],
    [{ names: ["'prod-*'"] }, /^the quotes are part of the name "'prod-\*'"; write 'prod-\*', quoted once$/],
    [{ names: ['prod-{eu,us}-1'] }, /brackets and braces are not patterns here; .*leave the quotes out/],
    [{ names: ['dev'], selector: 'a=b' }, /^names and --selector are both given; give one of the two$/],
    [{ names: ['dev'], all: true }, /^a cluster and --all are both given; give one of the two$/],
    [{ selector: 'a=b', all: true }, /^--all and --selector are both given/],
    [{ selector: ' ' }, /^--selector is empty; .*for all clusters: --all$/],
    [
      { selector: 'region=eu,,' },
      /^--selector "region=eu,,": found ',', expected: identifier after ','; write -l region=eu/,
    ],
    [{ selector: 'region==' }, /matches no UpstreamCluster; region is eu, us$/],
    [
      { selector: 'region=ue' },
      /^--selector "region=ue" matches no UpstreamCluster; did you mean region=us\? region is eu, us$/,
    ],
    [{ selector: 'regoin=eu' }, /did you mean region\? none has the label regoin; labels are canary, env, region$/],
    [{ selector: 'region=us,canary' }, /each part matches some, but none matches all parts$/],
    [{ all: true, except: ['*'] }, /^--except leaves out all chosen clusters; chosen: dev, prod-eu-1/],
    [{ all: true, except: ['staging'] }, /^there is no UpstreamCluster "staging"/],
  ] as const) {
    assert.match(chosen(choice), expected, JSON.stringify(choice))
  }
  assert.match(chosen({ all: true }, []), /^there is no UpstreamCluster; is --kubeconfig the right one\?$/)
  assert.match(chosen({ names: ['x*'] }, []), /this API server has none$/)
  assert.match(chosen({ selector: 'a=b' }, [{ name: 'dev', labels: {} }]), /none has a label: kubectl label uc NAME/)
})

test('a star alone means everything without saying so', () => {
  const means = (...names: string[]): boolean => meansEverything({ names, selector: undefined, all: false, except: [] })
  assert.deepEqual([means('*'), means('dev', '**'), means('prod-*'), means('?')], [true, true, false, false])
  assert.deepEqual([means('?*'), means('*?'), means('?*?'), means('??')], [true, true, true, false])
})

test('long lists are cut, and say how much is missing', () => {
  const names = Array.from({ length: 10 }, (_, i) => `c${i}`)
  assert.equal(listed(names, 3), 'c0, c1, c2 and 7 more')
  assert.equal(listed(names.slice(0, 4), 3), 'c0, c1, c2, c3')
})

test('globs match as regular expressions of the same meaning do', () => {
  const text = (letters: string): fc.Arbitrary<string> =>
    fc.array(fc.constantFrom(...letters), { maxLength: 8 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(text('ab*?'), text('ab'), (glob, name) => {
      const pattern = glob.replaceAll('*', '.*').replaceAll('?', '.')
      assert.equal(globMatches(glob, name), new RegExp(`^${pattern}$`).test(name))
    }),
  )
})
