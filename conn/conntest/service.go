package conntest

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	replicationpb "go.temporal.io/api/replication/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	workflowService = "/temporal.api.workflowservice.v1.WorkflowService/"
	healthService   = "/grpc.health.v1.Health/"

	serverVersion = "1.32.0" // the Temporal version that these answers are taken from
	clusterName   = "conntest"

	// As Temporal's: a poll without a task is answered after a minute, or a second before its deadline.
	longestPoll = time.Minute
	pollMargin  = time.Second
)

// service implements the part of Temporal that clients and workers need to connect, poll and start workflows.
type service struct {
	workflowservice.UnimplementedWorkflowServiceServer

	namespaces *directory
	clusterID  string

	mu         sync.Mutex
	executions map[execution]*started
}

type execution struct{ namespace, workflowID string }

type started struct{ runID, requestID string }

func newService(namespaces *directory) *service {
	return &service{namespaces: namespaces, clusterID: newID(), executions: map[execution]*started{}}
}

func (s *service) close() {}

// serve answers a call by the method in its service description.
func (s *service) serve(c call) error {
	name := path.Base(c.method)
	switch {
	case strings.HasPrefix(c.method, healthService) && c.request != nil:
		return serveHealth(c, name)
	case strings.HasPrefix(c.method, workflowService):
		i := slices.IndexFunc(workflowservice.WorkflowService_ServiceDesc.Methods, func(m grpc.MethodDesc) bool {
			return m.MethodName == name
		})
		if i < 0 {
			break
		}
		decode := func(m any) error {
			return proto.Unmarshal(c.body.data, m.(proto.Message)) //nolint:forcetypeassert // it is the method's request
		}
		answer, err := workflowservice.WorkflowService_ServiceDesc.Methods[i].Handler(s, c.stream.Context(), decode, nil)
		if err != nil {
			return err
		}
		return c.send(answer.(proto.Message)) //nolint:forcetypeassert // it is the method's answer
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", c.method)
}

func serveHealth(c call, name string) error {
	if err := c.send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}); err != nil ||
		name != "Watch" {
		return err
	}
	<-c.stream.Context().Done()
	return c.stream.Context().Err()
}

func (c *call) send(answer proto.Message) error {
	data, err := proto.Marshal(answer)
	if err != nil {
		return err
	}
	return c.stream.SendMsg(&frame{data})
}

// GetSystemInfo returns capabilities that all recent Temporal versions have.
func (s *service) GetSystemInfo(context.Context,
	*workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{
		ServerVersion: serverVersion,
		Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{
			SignalAndQueryHeader: true, InternalErrorDifferentiation: true, ActivityFailureIncludeHeartbeat: true,
			SupportsSchedules:        true,
			EncodedFailureAttributes: true, UpsertMemo: true, SdkMetadata: true, CountGroupByExecutionStatus: true,
		},
	}, nil
}

// GetClusterInfo returns name and ID of the cluster.
func (s *service) GetClusterInfo(context.Context,
	*workflowservice.GetClusterInfoRequest) (*workflowservice.GetClusterInfoResponse, error) {
	return &workflowservice.GetClusterInfoResponse{
		ServerVersion: serverVersion, ClusterName: clusterName, ClusterId: s.clusterID}, nil
}

// DescribeNamespace finds a namespace by its name or ID.
func (s *service) DescribeNamespace(
	_ context.Context, r *workflowservice.DescribeNamespaceRequest,
) (*workflowservice.DescribeNamespaceResponse, error) {
	name, id, ok := s.namespaces.find(r.GetNamespace(), r.GetId())
	if !ok {
		return nil, serviceerror.NewNamespaceNotFound(r.GetNamespace() + r.GetId())
	}
	return &workflowservice.DescribeNamespaceResponse{
		NamespaceInfo: &namespacepb.NamespaceInfo{
			Name: name, Id: id, State: enumspb.NAMESPACE_STATE_REGISTERED,
			Capabilities: &namespacepb.NamespaceInfo_Capabilities{},
		},
		Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(24 * time.Hour)},
		ReplicationConfig: &replicationpb.NamespaceReplicationConfig{
			ActiveClusterName: clusterName,
			Clusters:          []*replicationpb.ClusterReplicationConfig{{ClusterName: clusterName}},
		},
	}, nil
}

// PollWorkflowTaskQueue never has a task.
func (s *service) PollWorkflowTaskQueue(
	ctx context.Context, _ *workflowservice.PollWorkflowTaskQueueRequest,
) (*workflowservice.PollWorkflowTaskQueueResponse, error) {
	return &workflowservice.PollWorkflowTaskQueueResponse{}, poll(ctx)
}

// PollActivityTaskQueue never has a task.
func (s *service) PollActivityTaskQueue(
	ctx context.Context, _ *workflowservice.PollActivityTaskQueueRequest,
) (*workflowservice.PollActivityTaskQueueResponse, error) {
	return &workflowservice.PollActivityTaskQueueResponse{}, poll(ctx)
}

// PollNexusTaskQueue never has a task.
func (s *service) PollNexusTaskQueue(
	ctx context.Context, _ *workflowservice.PollNexusTaskQueueRequest,
) (*workflowservice.PollNexusTaskQueueResponse, error) {
	return &workflowservice.PollNexusTaskQueueResponse{}, poll(ctx)
}

// poll waits as long as Temporal does for a poll without a task.
func poll(ctx context.Context) error {
	wait := longestPoll
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)-pollMargin)
	}
	if wait <= 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	return sleep(ctx, wait)
}

// ShutdownWorker does nothing: polls end at their own deadlines.
func (s *service) ShutdownWorker(context.Context,
	*workflowservice.ShutdownWorkerRequest) (*workflowservice.ShutdownWorkerResponse, error) {
	return &workflowservice.ShutdownWorkerResponse{}, nil
}

// RecordWorkerHeartbeat ignores the heartbeat.
func (s *service) RecordWorkerHeartbeat(
	context.Context, *workflowservice.RecordWorkerHeartbeatRequest,
) (*workflowservice.RecordWorkerHeartbeatResponse, error) {
	return &workflowservice.RecordWorkerHeartbeatResponse{}, nil
}

// StartWorkflowExecution starts an execution that never ends. A repeated request gets the same answer. Another request
// for the same workflow is refused or, with USE_EXISTING, gets the existing execution.
func (s *service) StartWorkflowExecution(
	_ context.Context, r *workflowservice.StartWorkflowExecutionRequest,
) (*workflowservice.StartWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := execution{r.GetNamespace(), r.GetWorkflowId()}
	running := s.executions[key]
	switch {
	case running == nil:
		running = &started{newID(), r.GetRequestId()}
		s.executions[key] = running
	case running.requestID == r.GetRequestId() && r.GetRequestId() != "":
		// A repeated request: the first answer was lost.
	case r.GetWorkflowIdConflictPolicy() == enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING:
		return &workflowservice.StartWorkflowExecutionResponse{
			RunId: running.runID, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}, nil
	default:
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted(
			"Workflow execution is already running. WorkflowId: "+r.GetWorkflowId()+", RunId: "+running.runID+
				".", running.requestID, running.runID)
	}
	return &workflowservice.StartWorkflowExecutionResponse{
		RunId: running.runID, Started: true, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}, nil
}
