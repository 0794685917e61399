// The lines that `portcullis demo` prints to be copied, run as they stand.

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { binaries } from '../binaries.ts'
import { endWithThisProcess } from '../process.ts'
import { MAIN } from '../program.ts'
import { waitFor } from '../wait.ts'

/** Runs a line in a shell. */
export type RunLine = (line: string) => Promise<{ readonly code: number; readonly text: string }>

export interface DemoGuide {
  /** What was printed. */
  readonly guide: string
  readonly kubeconfig: string
  /** Where kubectl keeps its caches. */
  readonly home: string
}

export interface ProtectionGuide extends DemoGuide {
  /**
   * While it holds them, no new pod counts, however slow the machine is: so many lines are refused as should be. Afterwards
   * they count soon.
   */
  readonly holdNewPods: (run: RunLine, hold: boolean) => Promise<void>
}

const ROOT = join(import.meta.dirname, '../../..')
/** A drain waits for pods that take their time. */
const LINE_TIMEOUT_MS = 170_000

/** Every line of the section on pod protection, one after the other, and what each of them should say. */
export async function followProtectionGuide({ guide, kubeconfig, home, holdNewPods }: ProtectionGuide): Promise<void> {
  const { run, next, end } = await section(guide, ['Pod protection: the service', 'Scaling down'], kubeconfig, home)
  const refused =
    /PodProtector shop\/web reports too few available replicas to admit pod deletion: 9 required, 9 counted/
  await holdNewPods(run, true)
  await next('kubectl --context portcullis get ppr -A', 0, /shop +web +9 +12 +12/)
  const status = await next('bin/portcullis protect status', 0, /3 may go .*prod: 8 available of 8/s)
  assert.match(status, /staging: 4 available of 4/)
  await next('kubectl delete pod', 0, /pod "web-.*" deleted/)
  const all = await next('kubectl --context staging-alice delete pods', 1, refused)
  assert.equal(all.match(/" deleted/g)?.length, 2)
  await next('kubectl delete pod', 1, refused)
  await next('bin/portcullis protect why', 1, refused)
  await holdNewPods(run, false)
  await next('kubectl --context prod-admin drain', 0, /drained/)
  await next('kubectl --context prod-admin uncordon', 0, /uncordoned/)
  await holdNewPods(run, true)
  await next('bin/portcullis protect dry-run on', 0, /staging: dry run is on/)
  await next('kubectl --context staging-alice delete pods', 0, /Warning: protection in shadow mode would refuse/)
  await next('bin/portcullis protect dry-run off', 0, /staging: dry run is off/)
  await next('curl', 0, /webhook_request_count\{cell="staging",status="Rejected",cause="DeletePod"\} [1-9]/)
  end()
}

/** Every line of the sections on the degrade switch: set, lifted by hand, and by steps. */
export async function followDegradeGuide({ guide, kubeconfig, home }: DemoGuide): Promise<void> {
  const { next, end } = await section(guide, ['The degrade switch', 'Pod protection: the service'], kubeconfig, home)
  const refused = /degrade mode Freeze.*etcd is being restored/
  await next('bin/portcullis degrade prod --mode Freeze', 0, /degrade mode Freeze until/)
  await next('bin/portcullis degrade prod --status', 0, /in force/)
  await next('kubectl get pods', 1, refused)
  await next('kubectl --context prod-admin get nodes', 0, /node-1/)
  await next('bin/portcullis degrade prod --mode HeartbeatsOnly', 0, /degrade mode HeartbeatsOnly/)
  await next('bin/portcullis degrade prod --mode ReadOnly', 0, /degrade mode ReadOnly/)
  await next('kubectl --context portcullis patch uc prod', 0, /patched/)
  await next('bin/portcullis degrade prod --mode HeartbeatsOnly', 0, /degrade mode HeartbeatsOnly/)
  await next('bin/portcullis degrade prod --recover', 0, /recovery from HeartbeatsOnly: a mode at a time/)
  const steps = await next(
    'bin/portcullis degrade prod --status --watch',
    0,
    /recovery complete, the degrade mode is Off/,
  )
  for (const mode of ['ReadOnly', 'NoDisruption', 'Limited']) assert.match(steps, new RegExp(`recovery: ${mode} since`))
  end()
}

/** Every line of the section on scaling. */
export async function followScaleGuide({ guide, kubeconfig, home }: DemoGuide): Promise<void> {
  const { next, end } = await section(guide, ['Scaling down', 'Look around'], kubeconfig, home)
  await next('bin/portcullis scale why deployment/cart', 0, /deployment shop\/cart: \d+ replicas now, 3 asked for/)
  const annotated = await next('kubectl annotate', 0, /pod\/cart-\S+ annotated/)
  const [, cheap = ''] = /pod\/(cart-\S+) annotated/.exec(annotated) ?? []
  const row = new RegExp(`^${cheap} .* goes +DeletionCost: deletion cost -5`, 'm')
  await next('bin/portcullis scale why deployment/cart', 0, row)
  const scaled = await next('kubectl scale deployment cart', 0, /deployment.apps\/cart scaled/)
  assert.match(scaled, new RegExp(`Warning: deployments/cart: \\d+ -> 3 replicas deletes \\d+ pods?: .*${cheap}`))
  const refused = /PodProtector shop\/web: 9 required, .* refuses .*: too few would be left/
  await next('bin/portcullis scale why deployment/web', 1, refused)
  await next('kubectl scale deployment web', 1, /Forbidden.*8 -> 1 replicas refused: PodProtector shop\/web requires 9/)
  end()
}

/** Every line of the section on clusters that are read as one, while its watch runs in a window of its own. */
export async function followFederationGuide({ guide, kubeconfig, home }: DemoGuide): Promise<void> {
  const { next, until, open, end } = await section(
    guide,
    ['Clusters that are read as one', 'Without kubectl'],
    kubeconfig,
    home,
  )
  await next('kubectl --context all get deployments -A', 0, /prod--shop +checkout .*staging--shop +checkout/s)
  const columns = /NAMESPACE +NAME +READY +STATUS +RESTARTS +AGE +CLUSTER\n.*prod--shop +web-.*staging--shop +web-/s
  const before = await next('kubectl --context all get pods -A', 0, columns)
  const watch = open('kubectl --context all get pods -A -w')
  const added = (cluster: string): RegExp => new RegExp(`^ADDED +${cluster}--shop +checkout-\\S+`, 'gm')
  const pods = (text: string): number => text.match(/^(?:prod|staging)--/gm)?.length ?? 0
  try {
    await waitFor('all pods in the watch', () => (watch.text().match(/^ADDED/gm)?.length ?? 0) >= pods(before))
    const known = (cluster: string): number => watch.text().match(added(cluster))?.length ?? 0
    const [inProd, inStaging] = [known('prod'), known('staging')]
    await next('disable_staging true', 0, /staging patched/)
    await next('kubectl --context portcullis wait', 0, /condition met/)
    // The condition is False as soon as one of the resources cannot be followed, which may be the other one.
    const away = await until('kubectl --context all get pods -A', /Warning: staging as of [0-2]\d:[0-5]\d:[0-5]\d/)
    // What an earlier section scaled in prod may still be going.
    const ofStaging = (text: string): number => text.match(/^staging--/gm)?.length ?? 0
    assert.equal(ofStaging(away), ofStaging(before))
    await next('kubectl scale deployment checkout', 0, /scaled/)
    await waitFor('a new pod of prod', () => known('prod') > inProd)
    assert.doesNotMatch(watch.text(), /^DELETED +staging--/m)
    await next('disable_staging false', 0, /staging patched/)
    await next('kubectl --context portcullis wait', 0, /condition met/)
    await until('kubectl --context all get pods -A', /^(?!.*Warning).*prod--shop +web-.*staging--shop +web-/s)
    await next('kubectl --context all scale deployment checkout', 0, /scaled/)
    await waitFor('a new pod of staging', () => known('staging') > inStaging)
  } finally {
    watch.close()
  }
  end()
}

interface GuideSection {
  readonly run: RunLine
  /** Runs the next line, which begins so; it ends with this code, and prints this. */
  readonly next: (start: string, code: number, output: RegExp) => Promise<string>
  /** Runs the next line again and again until it prints this. */
  readonly until: (start: string, output: RegExp) => Promise<string>
  /** Starts the next line, which begins so, in a window of its own. */
  readonly open: (start: string) => OpenLine
  /** No line is left. */
  readonly end: () => void
}

interface OpenLine {
  /** What it has printed so far. */
  text(): string
  close(): void
}

/** Every line of the section that leads to the client that asks too much. */
export async function followWhoAsksGuide({ guide, kubeconfig, home }: DemoGuide): Promise<void> {
  const { next, end } = await section(guide, ['Top talkers', 'The dashboard'], kubeconfig, home)
  await next('bin/portcullis top', 0, /ci-bot/)
  await next('bin/portcullis top', 0, /ci-bot/)
  await next('bin/portcullis tap', 0, /ci-bot +list +pods/)
  end()
}

/** @param env over that of the test */
export async function section(
  guide: string,
  [from, to]: readonly [string, string],
  kubeconfig: string,
  home: string,
  env: Readonly<Record<string, string>> = {},
): Promise<GuideSection> {
  const lines = guideLines(guide, from, to)
  const isFunction = (line: string): boolean => /^\w+\(\) \{/.test(line)
  const prelude = `${lines.filter(isFunction).join('\n')}\n`
  const commands = lines.filter((line) => !isFunction(line))
  const { run, open } = await shell(prelude, { HOME: home, KUBECONFIG: kubeconfig, ...env })
  const take = (start: string): string => {
    const line = commands.shift() ?? ''
    assert.ok(line.startsWith(start), `${line} is not ${start}`)
    return line
  }
  return {
    run,
    open: (start) => open(take(start)),
    async next(start, code, output) {
      const line = take(start)
      const done = await run(line)
      assert.equal(done.code, code, `${line}: ${done.text}`)
      assert.match(done.text, output, line)
      return done.text
    },
    async until(start, output) {
      const line = take(start)
      return await waitFor(`${line} to print ${output}`, async () => {
        const { text } = await run(line)
        return output.test(text) ? text : undefined
      })
    },
    end: () => assert.deepEqual(commands, []),
  }
}

/** The demo's PodProtector, as its administrator changes it. */
export async function setMinReadySeconds(run: RunLine, minReadySeconds: number): Promise<void> {
  const patch = JSON.stringify({ spec: { minReadySeconds } })
  await succeed(run, `kubectl --context portcullis patch ppr web -n shop --type merge -p '${patch}'`)
}

/** @throws when the line fails */
export async function succeed(run: RunLine, line: string): Promise<void> {
  const { code, text } = await run(line)
  assert.equal(code, 0, `${line}: ${text}`)
}

/** The lines of a section that are to be copied. */
function guideLines(guide: string, from: string, to: string): string[] {
  const section = guide.slice(guide.indexOf(from), guide.indexOf(to))
  return section.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.trim()] : []))
}

interface Shell {
  readonly run: RunLine
  /** Starts a line that goes on until it is closed. */
  readonly open: (line: string) => OpenLine
}

/** A shell in the checkout, with the kubectl of the tests, and the programs in HOME. `bin/portcullis` in its lines is what tests start as the program. */
async function shell(prelude: string, env: Readonly<Record<string, string>>): Promise<Shell> {
  const path = `${env['HOME']}:${dirname((await binaries()).kubectl)}:${process.env['PATH']}`
  const options = { env: { ...process.env, PATH: path, ...env }, cwd: ROOT }
  const tested = (text: string): string => text.replaceAll('bin/portcullis', `${process.execPath} ${MAIN}`)
  return {
    run: (line) =>
      new Promise((resolve) => {
        const args = ['-c', tested(prelude + line)]
        execFile('sh', args, { ...options, timeout: LINE_TIMEOUT_MS }, (error, stdout, stderr) => {
          resolve({ code: Number(error === null ? 0 : error.code), text: stdout + stderr })
        })
      }),
    open(line) {
      // Its own process is the one that is ended.
      const child = spawn('sh', ['-c', `exec ${tested(line)}`], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
      endWithThisProcess(child)
      let text = ''
      for (const output of [child.stdout, child.stderr]) output.setEncoding('utf8').on('data', (some) => (text += some))
      return { text: () => text, close: () => void child.kill() }
    },
  }
}
