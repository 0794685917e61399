// Terms of the audit log (audit.k8s.io/v1).

export const AUDIT_LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const
export type AuditLevel = (typeof AUDIT_LEVELS)[number]

export const AUDIT_STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const
export type AuditStage = (typeof AUDIT_STAGES)[number]
