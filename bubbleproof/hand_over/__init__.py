"""Hands plans and schedules to the frameworks that train: files to start from, and what is lost.

planned         what is handed over: a program, and of a plan its model and deployment
launched        the scripts that are written for PyTorch's runtime, as they are written
torch_target, torchtitan_target, automodel_target, megatron_target
                what each framework is given, and what it cannot do
targets_list    all of them by name
trained_check   ten steps by PyTorch's own code, compared with the loop without a pipeline
"""
