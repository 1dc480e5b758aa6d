#!/bin/sh
# Deploys a release: ./deploy.sh 1.4.2
#
# Its first step migrates the database, and no two migrations may run at once, however many deploys are started. The others wait
# for their turn, and then find nothing left to do.
#
# A SQLite lease file keeps apart the deploys that start on this host (a build server, a jump host). Deploys from several
# hosts need a store on the network, which this version of holdfast does not have yet.
set -eu

release=${1:?which release?}
: "${HOLDFAST_STORE:=sqlite:/var/lib/holdfast/leases.db}"
export HOLDFAST_STORE

# The key names what is protected, the database, rather than who protects it.
#   --wait    a deploy that waits for ever is forgotten; after ten minutes somebody should look
#   --ttl     how long this host may be out of touch (paused, overloaded) before another may take the key
#   --grace   from TERM to KILL when the lease is lost: time to roll the transaction back
#   --label   who it is, for whoever waits: they read it on their screen
# A migration that can (most databases roll back) should run in a transaction. A resource that can refuse a late writer
# by itself gets $HOLDFAST_FENCE, a number that grows with every holder.
status=0
holdfast run --wait 10m --ttl 30s --grace 5s --label "deploy of $release by $(id -un)" \
  migrate:production -- ./migrate "$release" || status=$?

case $status in
  0) ;;
  75)
    echo "deploy: another migration runs for more than ten minutes; $release was not deployed" >&2
    exit 75
    ;;
  76)
    # The migration was stopped, all of it, before another could start. Do not go on: nobody knows how far it came.
    echo "deploy: the lease was lost during the migration; $release was not deployed; look at the database first" >&2
    exit 76
    ;;
  *)
    echo "deploy: the migration failed ($status); $release was not deployed" >&2
    exit "$status"
    ;;
esac

# From here on without the lease: what may happen at the same time as another deploy's migration.
./restart "$release"
echo "deploy: $release is live"
