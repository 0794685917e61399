// The flags of `portcullis scale`.

import type { Command } from 'commander'
import { forControlPlane, parseWholeNumber } from '../../cli/command/flags.ts'
import type { CommandContext } from '../../cli/command/output.ts'

export function addScale(program: Command, { out, err, now, done }: CommandContext): void {
  const scale = program
    .command('scale')
    .description('which pods a new number of replicas deletes, and how the cluster-autoscalers are')
  forControlPlane(scale.command('why'))
    .description(
      'which pods a new number of replicas deletes, by which rule; exit code 1 when protection would refuse it',
    )
    .argument('<type/name>', 'deployment, replicaset, statefulset or replicationcontroller, as deployment/web')
    .requiredOption('--replicas <n>', 'the new number', parseWholeNumber)
    .option('-n, --namespace <namespace>', 'where it is; default: default')
    .option('--cluster <name>', 'UpstreamCluster that has it, or the name of a cell; default: no PodProtector is asked')
    .option(
      '--pod-kubeconfig <file>',
      'kubeconfig of the cluster that has it; default: as protect why, or --kubeconfig',
    )
    .option('--pod-context <name>', "context in it; default: the kubeconfig's own")
    .option('--stale-after <duration>', '--protection-stale-after of the gateway; default: as it marked the cells')
    .option('--clock-skew <duration>', '--protection-clock-skew of the gateway')
    .option('--max-concurrent-lag <n>', '--protection-max-concurrent-lag of the gateway', parseWholeNumber)
    .option('-o, --output <format>', 'json; default: a table')
    .action(async (target, options) => done((await import('./why.ts')).scaleWhy({ ...options, target, now, out, err })))
  forControlPlane(scale.command('status'))
    .description('the cluster-autoscalers of all clusters and their node groups; exit code 1 when one is in trouble')
    .option('--cluster <name>', 'only this UpstreamCluster')
    .option('-o, --output <format>', 'json; default: a table')
    .action(async (options) => done((await import('./status.ts')).scaleStatus({ ...options, now, out, err })))
}
