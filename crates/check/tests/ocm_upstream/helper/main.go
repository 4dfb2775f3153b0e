// Asks Open Cluster Management's rollout helper about the cases on standard input, and prints what
// it answers: who gets the template, when to look again, and how long the fastest of several calls
// took.
package main

import (
	"encoding/json"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	testclock "k8s.io/utils/clock/testing"
	apiv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	"open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"
)

type questions struct {
	Now   time.Time  `json:"now"`
	Calls int        `json:"calls"`
	Cases []question `json:"cases"`
}

type question struct {
	Strategy apiv1alpha1.RolloutStrategy `json:"strategy"`
	Groups   []struct {
		Index    int32    `json:"index"`
		Name     string   `json:"name"`
		Clusters []string `json:"clusters"`
	} `json:"groups"`
	// Of clusters that have the template.
	Statuses []struct {
		Cluster string    `json:"cluster"`
		Status  string    `json:"status"`
		Since   time.Time `json:"since"`
	} `json:"statuses"`
}

type answer struct {
	Starts       []string `json:"starts"`
	RecheckAfter int64    `json:"recheckAfter"`
	Nanoseconds  int64    `json:"nanoseconds"`
}

var statuses = map[string]v1alpha1.RolloutStatus{
	"ToApply":     v1alpha1.ToApply,
	"Progressing": v1alpha1.Progressing,
	"Succeeded":   v1alpha1.Succeeded,
	"Failed":      v1alpha1.Failed,
}

func main() {
	var asked questions
	check(json.NewDecoder(os.Stdin).Decode(&asked))
	v1alpha1.RolloutClock = testclock.NewFakeClock(asked.Now)
	answers := []answer{}
	for _, question := range asked.Cases {
		answers = append(answers, ask(question, asked.Calls))
	}
	check(json.NewEncoder(os.Stdout).Encode(answers))
}

func ask(question question, calls int) answer {
	groups := v1beta1.ClusterGroupsMap{}
	for _, group := range question.Groups {
		key := v1beta1.GroupKey{GroupName: group.Name, GroupIndex: group.Index}
		groups[key] = sets.New(group.Clusters...)
	}
	tracker := v1beta1.NewPlacementDecisionClustersTrackerWithGroups(nil, nil, groups)
	handler, err := v1alpha1.NewRolloutHandler[struct{}](tracker, nil)
	check(err)
	has := sets.New[string]()
	existing := []v1alpha1.ClusterRolloutStatus{}
	for _, status := range question.Statuses {
		has.Insert(status.Cluster)
		existing = append(existing, v1alpha1.ClusterRolloutStatus{
			ClusterName:        status.Cluster,
			Status:             statuses[status.Status],
			LastTransitionTime: &metav1.Time{Time: status.Since},
		})
	}
	var result v1alpha1.RolloutResult
	fastest := time.Duration(0)
	for range calls {
		begun := time.Now()
		_, result, err = handler.GetRolloutCluster(question.Strategy, existing)
		took := time.Since(begun)
		check(err)
		if fastest == 0 || took < fastest {
			fastest = took
		}
	}
	found := answer{Starts: []string{}, Nanoseconds: fastest.Nanoseconds()}
	for _, cluster := range result.ClustersToRollout {
		if !has.Has(cluster.ClusterName) {
			found.Starts = append(found.Starts, cluster.ClusterName)
		}
	}
	if result.RecheckAfter != nil {
		found.RecheckAfter = int64(*result.RecheckAfter / time.Second)
	}
	slices.Sort(found.Starts)
	return found
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
