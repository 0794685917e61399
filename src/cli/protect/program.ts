// The flags of `portcullis protect`.

import { type Command, InvalidArgumentError } from 'commander'
import { registerProtectInstall } from './install-program.ts'

/** A command that speaks to the API server of the objects, with the flags that say where it is. */
export type ControlPlaneCommand = Command<[], { kubeconfig?: string; context?: string }>

export interface ProtectParts {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly now: () => number
  /** Takes the exit code. */
  readonly done: (result: Promise<number> | number) => Promise<void>
  /** Options of every command that speaks to the API server of the objects. */
  readonly forControlPlane: (command: Command) => ControlPlaneCommand
}

export function addProtect(program: Command, { out, err, now, done, forControlPlane }: ProtectParts): void {
  const protect = program.command('protect').description('pod protection: how it stands, what it would say, its switch')
  forControlPlane(protect.command('status'))
    .description('PodProtectors with their numbers and cells; exit code 1 when one is below its minimum')
    .argument('[name]', 'only this one')
    .option('-n, --namespace <namespace>', 'where they are; default: default')
    .option('-A, --all-namespaces', 'in all namespaces', false)
    .action((name, options) =>
      done(
        import('./status.ts').then(({ protectStatus }) =>
          protectStatus({ ...options, ...(name !== undefined && { name }), now, out, err }),
        ),
      ),
    )
  forControlPlane(protect.command('why'))
    .description('what the deletion of a pod would be answered now, and why; exit code 1 when it would be refused')
    .argument('<pod>', 'its name')
    .option('-n, --namespace <namespace>', 'where it is; default: default')
    .requiredOption('--cluster <name>', 'UpstreamCluster that has it, or the name of a cell')
    .option(
      '--pod-kubeconfig <file>',
      'of that cluster, or of the gateway in front of it; default: through the gateway, or as it',
    )
    .option('--pod-context <name>', "context in it; default: the kubeconfig's own")
    .option('--stale-after <duration>', '--protection-stale-after of the gateway; default: as it marked the cells')
    .option('--clock-skew <duration>', '--protection-clock-skew of the gateway')
    .option('--max-concurrent-lag <n>', '--protection-max-concurrent-lag of the gateway', wholeNumber)
    .action((pod, options) =>
      done(import('./why.ts').then(({ protectWhy }) => protectWhy({ ...options, pod, now, out, err }))),
    )
  forControlPlane(protect.command('dry-run'))
    .description('on: evaluate and count, but refuse nothing; off: refuse again. Waits until every replica does so')
    .argument('<mode>', 'on or off')
    .argument('[clusters...]', 'metadata.name of UpstreamClusters; default: all with spec.podProtection')
    .option('--timeout <duration>', 'how long to wait for each', '30s')
    .action((mode, clusters, options) =>
      done(
        import('./dry-run.ts').then(({ protectDryRun }) =>
          protectDryRun({ ...options, mode, clusters, now, out, err }),
        ),
      ),
    )
  registerProtectInstall(protect, { out, err, now, done })
}

function wholeNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number, 0 or more.')
}
