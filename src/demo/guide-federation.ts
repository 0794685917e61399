// Federated reads in the output of `portcullis demo`: the pods of both clusters in one list and one watch, while one of the two is away.

/** Its servers take no requests any more: as if it were lost. */
const DISABLED = [0, 1].map((server) => `{"op":"add","path":"/spec/servers/${server}/disabled","value":'$1'}`).join(',')

export const FEDERATION_GUIDE: string = `
Clusters that are read as one: the cluster all has the pods and deployments of prod and staging, for users who may read them in both. Run the
third command in another window:
  kubectl --context all get deployments -A
  kubectl --context all get pods -A
  kubectl --context all get pods -A -w --output-watch-events
Take staging away: after some seconds its pods are shown as they were last known, with a Warning that says since when. The watch continues with
prod, and reports no pod as DELETED:
  disable_staging() { kubectl --context portcullis patch uc staging --type json -p '[${DISABLED}]'; }
  disable_staging true
  kubectl --context portcullis wait uc all --for condition=MembersReady=False
  kubectl --context all get pods -A
  kubectl scale deployment checkout --replicas 7
Bring it back: the Warning is gone, and the same watch shows the changes in staging. A write goes to the member that its namespace names:
  disable_staging false
  kubectl --context portcullis wait uc all --for condition=MembersReady
  kubectl --context all get pods -A
  kubectl --context all scale deployment checkout -n staging--shop --replicas 5`
