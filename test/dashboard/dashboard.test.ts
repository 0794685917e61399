// The dashboard in a real Chromium, on a running gateway.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import type { ClusterPage } from '../../src/insight/api/cluster-page.ts'
import type { Overview } from '../../src/insight/api/overview.ts'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'
import { assertAccessible, assertFits, launchChromium, openPage } from './browser.ts'
import { MARKUP, type ObservedGateway, PROTECTED, startObserved } from './observed-gateway.ts'

const OTHERS = 999
const BUSY = 'prod.example.com'
const VIEWS = ['#/', `#/clusters/${BUSY}`, '#/explain', '#/tap']
const ended = new AbortController()
let traffic: Promise<void>
let observed: ObservedGateway
let browser: Browser

before(async () => {
  ;[observed, browser] = await Promise.all([startObserved(OTHERS), launchChromium()])
  traffic = trafficUntil(ended.signal)
  await waitForState(async () => (await overview()).totals.refusedPerSecond > 0, 'the second sample of the counts')
  await waitForState(async () => (await overview()).totals.hurting === 11, 'every endpoint has been probed in peace')
}, PATIENT)
after(async () => {
  ended.abort()
  await traffic
  await browser.close()
  await observed.stop()
})

/** A few dozen requests a second. */
async function trafficUntil(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await observed.traffic(20)
    await sleep(400)
  }
}

async function json<T>(path: string): Promise<T> {
  const response = await fetch(observed.origin + path)
  assert.equal(response.status, 200, path)
  return (await response.json()) as T
}

/** `waitFor`, with what is waited for at the end. */
function waitForState(look: () => boolean | Promise<boolean>, what: string): Promise<boolean> {
  return waitFor(what, look, { timeoutMs: 90_000 })
}

function overview(query = ''): Promise<Overview> {
  return json(`/api/v1/overview${query}`)
}

async function opened(page: Page, view: string): Promise<void> {
  await page.goto(`${observed.origin}/${view}`)
  await page.locator('main h1, main .summary').first().waitFor()
}

describe('the answers', () => {
  test('the overview says what hurts, why, and what is refused; small with a thousand clusters', PATIENT, async () => {
    const response = await fetch(`${observed.origin}/api/v1/overview`)
    const text = await response.text()
    assert.ok(text.length < 64 * 1024, `${text.length} bytes`)
    const { totals, clusters, refusals, switches, matching, pages } = JSON.parse(text) as Overview
    assert.deepEqual([totals.clusters, matching, pages], [OTHERS + 1, OTHERS + 1, 17])
    const busy = clusters.find(({ name }) => name === BUSY)
    assert.ok(busy)
    // On a busy machine it really is slow, too.
    const troubles = busy.troubles.filter((trouble) => trouble !== 'slow')
    assert.deepEqual(troubles, ['errors', 'endpoints', 'refused'])
    assert.deepEqual(busy.endpoints, { up: 1, all: 2 })
    assert.ok(busy.errorRatio > 0.05 && busy.errorRatio < 0.3 && busy.p99 !== null, JSON.stringify(busy))
    assert.deepEqual(clusters[0]?.troubles, ['down'], 'the worst first')
    const denied = refusals.find(({ reason }) => reason === 'policy-denied')
    assert.deepEqual([denied?.cluster, denied?.rule, denied?.code], [BUSY, 'dispatchPolicies[0]', 403])
    assert.equal(totals.switched, 99)
    assert.deepEqual([switches.length, switches[0]?.cluster], [50, 'stage-0009'], 'the one that ends next comes first')
    assert.equal(totals.hurting, 11)
  })

  test('what is asked again and has not changed costs no body', PATIENT, async () => {
    const path = `${observed.origin}/api/v1/overview?show=hurting`
    await waitForState(async () => {
      const etag = (await fetch(path)).headers.get('etag') ?? ''
      const again = await fetch(path, { headers: { 'if-none-match': etag } })
      return again.status === 304 && (await again.text()) === ''
    }, 'two answers out of one sample')
  })

  test('search, filter, order and pages', PATIENT, async () => {
    const names = async (query: string): Promise<string[]> => (await overview(query)).clusters.map(({ name }) => name)
    assert.deepEqual(await names('?search=EDGE-0002'), ['edge-0002'])
    assert.deepEqual((await names('?show=switched&sort=name')).slice(0, 2), ['build-0019', 'build-0039'])
    assert.equal((await names('?show=hurting')).length, 11)
    assert.equal((await names('?sort=requests'))[0], BUSY)
    const last = await overview('?page=1000')
    assert.deepEqual([last.page, last.clusters.length], [17, 40])
    assert.equal((await overview('?page=-1&sort=nonsense&show=%00')).page, 1)
  })

  test('groups by label', PATIENT, async () => {
    const { labelKeys, groups, clusters } = await overview('?group=env&sort=name')
    assert.deepEqual(labelKeys, ['env'])
    const counts = groups.map(({ value, clusters: members }) => [value, members])
    assert.deepEqual(counts.slice(0, 2), [
      ['build', 249],
      ['edge', 250],
    ])
    assert.deepEqual(counts.at(-1), ['', 1], 'the one without the label comes last')
    assert.ok(clusters.every(({ group }) => group === 'build'))
    assert.deepEqual((await overview('')).groups, [])
  })

  test('a cluster has its endpoints, policies with hits, and limits with fill', PATIENT, async () => {
    const { endpoints, policies, limits, refusals } = await json<ClusterPage>(`/api/v1/clusters/${BUSY}`)
    assert.deepEqual(
      endpoints.map(({ state }) => state),
      ['up', 'down'],
    )
    assert.deepEqual(
      policies.map(({ index, matches, action, limit }) => [index, matches, action, limit]),
      [
        [0, 'all verbs secrets', 'deny', ''],
        [1, 'get, list, watch everything', 'allow', 'reads'],
        [2, 'all verbs everything', 'allow', 'writes'],
      ],
    )
    assert.ok(policies.slice(0, 2).every(({ hits }) => hits > 0) && policies[2]?.hits === 0, JSON.stringify(policies))
    const [reads] = limits
    assert.deepEqual([reads?.name, reads?.size], ['reads', '50/s, burst 100'])
    assert.ok((reads?.fill ?? -1) >= 0 && (reads?.fill ?? 2) <= 1, JSON.stringify(reads))
    assert.equal(refusals[0]?.reason, 'policy-denied')
    assert.equal((await fetch(`${observed.origin}/api/v1/clusters/nobody`)).status, 404)
    assert.equal((await fetch(`${observed.origin}/api/v1/clusters/%zz`)).status, 404)
  })

  test('changes are told: objects, modes with their end, endpoints', PATIENT, async () => {
    const { clusters, gateway, stub } = observed
    const index = clusters.findIndex(({ metadata }) => metadata.name === 'edge-0002')
    const before = clusters[index]
    assert.ok(before !== undefined)
    clusters[index] = { ...before, spec: { ...before.spec, degrade: { mode: 'Freeze', reason: MARKUP } } }
    gateway.apply(clusters)
    await gateway.applied()
    const told = async (text: string): Promise<boolean> =>
      (await overview()).changes.some((change) => change.cluster === 'edge-0002' && change.text.includes(text))
    await waitForState(() => told(`degrade mode Off → Freeze: ${MARKUP}`), 'the switch is told')
    clusters[index] = {
      ...before,
      spec: { ...before.spec, servers: [...before.spec.servers, { endpoint: 'https://127.0.0.1:1' }] },
    }
    gateway.apply(clusters)
    await waitForState(() => told('changed: servers'), 'the change of the object is told')
    await waitForState(() => told('degrade mode Freeze → Off'), 'that it is lifted is told')
    assert.ok(stub.healthy)
  })

  test('explain is the one of the command line', PATIENT, async () => {
    const answer = await json<{ code: number; policy: number }>(
      `/api/v1/explain?method=GET&target=/api/v1/secrets&host=${BUSY}&user=alice`,
    )
    assert.deepEqual([answer.code, answer.policy], [403, 0])
    assert.equal((await fetch(`${observed.origin}/api/v1/explain?target=secrets`)).status, 400)
    assert.equal((await fetch(`${observed.origin}/api/v1/explain`, { method: 'POST' })).status, 405)
  })

  test('every answer has the policy, no answer lets another origin read it', PATIENT, async () => {
    for (const path of ['/', '/api/v1/overview', '/metrics', '/livez', '/assets/nothing.js', '/nothing']) {
      const { headers } = await fetch(observed.origin + path, { headers: { origin: 'https://evil.example' } })
      assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'; script-src 'self'; /, path)
      assert.match(headers.get('content-security-policy') ?? '', /require-trusted-types-for 'script'/, path)
      assert.equal(headers.get('access-control-allow-origin'), null, path)
      assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
    }
  })

  test('files have a hash in their name, are kept for good, and show nothing of this place', PATIENT, async () => {
    const index = await (await fetch(`${observed.origin}/`)).text()
    const names = [...index.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, name = '']) => name)
    assert.equal(names.length, 3)
    let bytes = 0
    for (const name of names) {
      assert.match(name, /-[0-9a-f]{12}\.(js|css|svg)$/)
      const response = await fetch(observed.origin + name)
      assert.match(response.headers.get('cache-control') ?? '', /immutable/)
      const text = await response.text()
      bytes += text.length
      assert.doesNotMatch(text, /prod\.example|127\.0\.0\.1|node_modules|sourceMappingURL|\/work\//)
    }
    assert.ok(bytes < 150_000, `${bytes} bytes`)
    assert.doesNotMatch(index, /<script>|style=|onload/)
    assert.equal((await fetch(`${observed.origin}/assets/..%2f..%2fpackage.json`)).status, 404)
    assert.equal((await fetch(`${observed.origin}/assets/login.html`)).status, 404)
  })
})

describe('in a browser', { concurrency: 4 }, () => {
  test(
    'every view, on three widths, light and dark: nothing too wide, no violation of the policy, axe finds nothing',
    PATIENT,
    async () => {
      for (const [width, colorScheme] of [
        [360, 'dark'],
        [768, 'dark'],
        [1440, 'light'],
      ] as const) {
        const { page, complaints, close } = await openPage(browser, { width, colorScheme })
        for (const view of VIEWS) {
          await opened(page, view)
          await assertFits(page, `${view} at ${width}`)
          if (width !== 768) await assertAccessible(page, `${view} at ${width}, ${colorScheme}`)
        }
        assert.deepEqual(complaints, [])
        await close()
      }
    },
  )

  test('a thousand clusters are shown a page at a time, searched and filtered', PATIENT, async () => {
    const { page, complaints, close } = await openPage(browser)
    await opened(page, '#/')
    const tiles = page.locator('.tile')
    await tiles.first().waitFor()
    assert.equal(await tiles.count(), 60)
    // Until the servers of all have been probed, more do.
    const verdict = page.locator('#verdict', { hasText: /1[12] of 1,000 clusters unhealthy/ })
    await verdict.waitFor({ timeout: 60_000 })
    await page.keyboard.press('/')
    await page.keyboard.type('stage-0009')
    await waitForState(async () => (await tiles.count()) === 1, 'one tile is left')
    assert.equal(await tiles.locator('h3').innerText(), 'stage-0009')
    await page.getByLabel('Search clusters by name').fill('')
    await page.getByLabel('Which clusters').selectOption('hurting')
    await waitForState(async () => [11, 12].includes(await tiles.count()), 'those that hurt are left')
    await page.getByLabel('Which clusters').selectOption('all')
    await page.getByLabel('Group clusters by label').selectOption('env')
    // Until the next answer the tiles that are there are grouped.
    const hasText = /^env=build 249 clusters, \d+ unhealthy, \d+ switched$/
    await page.locator('.tiles .group', { hasText }).waitFor()
    await page.getByLabel('Group clusters by label').selectOption('')
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('page 2 of 17').waitFor()
    assert.deepEqual(complaints, [])
    await close()
  })

  test('markup in a reason, a name, a user agent stays text', PATIENT, async () => {
    const { page, complaints, close } = await openPage(browser)
    await opened(page, '#/clusters/stage-0009')
    await page.getByText(MARKUP).first().waitFor()
    await opened(page, '#/')
    await page.getByText(MARKUP).first().waitFor()
    await opened(page, `#/clusters/${encodeURIComponent(MARKUP)}`)
    await page.getByRole('heading', { name: MARKUP }).waitFor()
    assert.equal(
      await page.evaluate('String(window.hacked) + document.querySelectorAll("img, main script").length'),
      'undefined0',
    )
    await waitForState(() => complaints.length > 0, 'that there is no such cluster')
    await page.getByText('There is no such cluster. There is nothing to show yet.').waitFor()
    assert.ok(
      complaints.every((line) => line.includes('404')),
      complaints.join(),
    )
    await close()
  })

  test('top talkers are shown, and a tap runs and stops', PATIENT, async () => {
    const { page, complaints, close } = await openPage(browser, { width: 1440 })
    await opened(page, `#/clusters/${BUSY}`)
    await page.getByRole('region', { name: 'Top talkers' }).getByText('alice').first().waitFor()
    await page.getByLabel('Grouped by', { exact: true }).selectOption('userAgent')
    await page.getByRole('rowheader', { name: MARKUP }).waitFor()
    await opened(page, '#/tap')
    await page.getByLabel('Verb').fill('list')
    await page.getByLabel('only refused requests').check()
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByText('policy-denied dispatchPolicies[0]').first().waitFor()
    assert.match(await page.locator('#main tbody tr').first().innerText(), /alice.*secrets.*403/s)
    assert.equal(await page.locator('.command code').innerText(), 'portcullis tap --verb list --refused')
    await assertAccessible(page, 'a tap')
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped.').waitFor()
    assert.deepEqual(complaints, [])
    await close()
  })

  test('by keyboard: skip link, navigation, search, a cluster and back, with a visible focus', PATIENT, async () => {
    const { page, close } = await openPage(browser)
    await opened(page, '#/')
    await page.locator('.tile').first().waitFor()
    const focused = (): Promise<string> =>
      page.evaluate(
        '(document.activeElement?.textContent || document.activeElement?.ariaLabel || "").trim().slice(0, 40)',
      )
    const visited: string[] = []
    for (let i = 0; i < 11; i++) {
      await page.keyboard.press('Tab')
      const outline = await page.evaluate<string>(
        '((at) => getComputedStyle(at).outlineStyle + getComputedStyle(at.closest(".tile") ?? at).outlineStyle)(document.activeElement)',
      )
      assert.match(outline, /solid/, `the focus is seen on ${await focused()}`)
      visited.push(await focused())
    }
    assert.deepEqual(visited.slice(0, 5), ['Skip to content', 'Portcullis', 'Overview', 'Explain', 'Tap'])
    assert.match(visited.slice(5).join(), /Colours: auto/)
    await page.reload()
    await page.locator('.tile').first().waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate('document.activeElement?.id'), 'main')
    await page.getByLabel('Search clusters by name').fill(BUSY)
    await waitForState(async () => (await page.locator('.tile').count()) === 1, 'the cluster is found')
    await page.locator('.tile a').focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: BUSY, level: 1 }).waitFor()
    assert.equal(await page.evaluate('document.activeElement?.id'), 'main')
    await page.goBack()
    await page.locator('.tile').first().waitFor()
    await close()
  })

  test('the theme can be chosen, and is kept', PATIENT, async () => {
    const { page, close } = await openPage(browser, { colorScheme: 'light' })
    const ground = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor')
    await opened(page, '#/explain')
    const light = await ground()
    await page.getByRole('button', { name: 'Colours' }).click()
    await page.getByRole('button', { name: 'Colours' }).click()
    const dark = await ground()
    assert.notEqual(dark, light)
    await page.reload()
    await page.getByText('Colours: dark').waitFor()
    assert.equal(await ground(), dark)
    await close()
  })

  test('pod protection is shown, with the pods that cannot go', PATIENT, async () => {
    const { page, complaints, close } = await openPage(browser)
    await opened(page, `#/clusters/${PROTECTED}`)
    const pane = page.getByRole('region', { name: 'Pod protection cell shop' })
    await pane.getByText('No PodProtector has pods here.').waitFor()
    await page.route(`**/api/v1/clusters/${PROTECTED}*`, async (route) => {
      const answer = (await (await route.fetch({ headers: {} })).json()) as ClusterPage
      const numbers = { minAvailable: 2, available: 1, pending: 0, mayGo: 0, stuckCount: 1, fault: '' }
      const row = { namespace: 'shop', name: MARKUP, stuck: ['web-0'], ...numbers }
      await route.fulfill({ json: { ...answer, protection: { ...answer.protection, protectors: [row] } } })
    })
    await pane.getByRole('rowheader', { name: `shop/${MARKUP}` }).waitFor()
    assert.match(await pane.locator('tbody tr').innerText(), /1 pod.*web-0/s)
    const why = `portcullis protect why web-0 -n shop --cluster ${PROTECTED}`
    await pane.getByText(why).waitFor()
    await assertAccessible(page, 'pod protection')
    assert.deepEqual(complaints, [])
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await close()
  })

  test('commands to copy are filled in, and quoted for a shell', PATIENT, async () => {
    const { page, close } = await openPage(browser)
    await opened(page, `#/clusters/${BUSY}`)
    const commands = await page.locator('.command code').allInnerTexts()
    assert.deepEqual(commands.slice(0, 3), [
      `portcullis degrade ${BUSY} --mode NoDisruption --reason 'say why' --ttl 30m`,
      `portcullis degrade ${BUSY} --mode ReadOnly --reason 'say why' --ttl 30m`,
      `portcullis degrade ${BUSY} --status`,
    ])
    assert.match(
      commands[3] ?? '',
      /^kubectl patch upstreamcluster prod\.example\.com --type json -p '\[\{"op":"test",.*\/tokenBucket\/qps","value":100\}\]'$/,
    )
    await close()
  })

  test('explain is asked by a form', PATIENT, async () => {
    const { page, complaints, close } = await openPage(browser)
    await opened(page, '#/explain')
    await page.getByLabel('Host or cluster').fill(BUSY)
    await page.getByLabel('Path', { exact: false }).first().fill('/api/v1/secrets')
    await page.getByLabel('User', { exact: true }).or(page.locator('input[name=user]')).first().fill("o'brien")
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('403 Forbidden').waitFor()
    assert.equal(
      await page.locator('.command code').innerText(),
      `portcullis explain GET /api/v1/secrets --host ${BUSY} --user 'o'\\''brien'`,
    )
    assert.deepEqual(complaints, [])
    await close()
  })

  test('a hidden tab asks nothing; a gateway that is away leaves the data with its age', PATIENT, async () => {
    const { page, close } = await openPage(browser)
    let asked = 0
    await page.route('**/api/v1/overview*', async (route) => {
      asked++
      await route.continue()
    })
    await opened(page, '#/')
    await waitForState(() => asked >= 2, 'it asks again')
    await page.unroute('**/api/v1/overview*')
    await page.route('**/api/v1/overview*', (route) => route.abort())
    await page.getByText(/The gateway does not answer\. The numbers below are \d+s old/).waitFor()
    assert.equal(await page.locator('.tile').count(), 60, 'what was known stays')
    await page.unroute('**/api/v1/overview*')
    await page.locator('.banner').waitFor({ state: 'detached' })
    await page.evaluate(
      'Object.defineProperty(document, "hidden", { value: true, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))',
    )
    let hidden = 0
    await page.route('**/api/v1/overview*', async (route) => {
      hidden++
      await route.continue()
    })
    // Twice as long as between two questions, by the page's own clock.
    await page.evaluate(
      'new Promise((resolve) => { let left = 5; const timer = setInterval(() => { if (--left === 0) { clearInterval(timer); resolve() } }, 1000) })',
    )
    assert.equal(hidden, 0)
    await page.evaluate(
      'Object.defineProperty(document, "hidden", { value: false, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))',
    )
    await waitForState(() => hidden > 0, 'it asks when it is seen again')
    await close()
  })
})
